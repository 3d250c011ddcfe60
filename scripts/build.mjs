import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import * as esbuild from 'esbuild';
import swaggerUiFolder from 'swagger-ui-dist/absolute-path.js';
import { withPrepareLock } from './prepare-lock.mjs';
import { consoleFingerprint, fingerprint, listSources } from './sources.mjs';

/** What the page of `/docs` is made of, and its licences: the platform serves them itself. */
const SWAGGER_UI = ['swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'swagger-ui.css'];

/**
 * Builds `dist/`: each TypeScript file, the SQL and static files, the workflow bundle, and the page of the console. Builds into `dist.tmp/` and swaps it in at the
 * end, so that an interrupted build keeps the previous one.
 * @param {string} root the checkout
 */
export async function build(root) {
  const stamp = fingerprint(root);
  const { compiled, copied } = listSources(root);
  const staging = join(root, 'dist.tmp');
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging);
  await transpile(root, compiled, staging);
  for (const file of [...copied, 'package.json']) copyInto(root, file, staging);
  for (const file of SWAGGER_UI) cpSync(join(swaggerUiFolder(), file), join(staging, 'api', 'docs', file));
  await bundleWorkflows(staging, join(root, 'dist'));
  await bundleConsole(root, join(staging, 'console'), join(root, 'dist', 'console'));
  writeFileSync(join(staging, '.stamp'), stamp);
  swap(root, staging);
}

async function transpile(root, files, outdir) {
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: files,
    outdir,
    outbase: root,
    bundle: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    logLevel: 'warning',
  });
}

/** Bundles the workflows, so that a worker starts without webpack. Stack traces name files in `dist/`, not in the staging folder. */
async function bundleWorkflows(staging, dist) {
  const workflowsPath = join(staging, 'workflows', 'index.js');
  if (!existsSync(workflowsPath)) return;
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    logger: new DefaultLogger('WARN'),
    webpackConfigHook: (config) => ({
      ...config,
      output: {
        ...config.output,
        devtoolModuleFilenameTemplate: ({ absoluteResourcePath }) => absoluteResourcePath.replace(staging, dist),
      },
    }),
  });
  writeFileSync(join(staging, 'workflows.bundle.js'), code);
}

/** Builds the console with Vite, or takes over the previous build where nothing of it has changed. */
async function bundleConsole(root, outDir, previous) {
  const stamp = consoleFingerprint(root);
  const stampFile = join(previous, '.stamp');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp)
    return cpSync(previous, outDir, { recursive: true });
  const vite = await import('vite');
  const { NODE_ENV } = process.env;
  process.env.NODE_ENV = 'production'; // Vite keeps another one, as tests have it, and would build for development
  await vite.build({ configFile: join(root, 'console', 'vite-config.ts'), build: { outDir, emptyOutDir: true } });
  if (NODE_ENV === undefined) delete process.env.NODE_ENV;
  else process.env.NODE_ENV = NODE_ENV;
  writeFileSync(join(outDir, '.stamp'), stamp);
}

function copyInto(root, file, outdir) {
  mkdirSync(dirname(join(outdir, file)), { recursive: true });
  cpSync(join(root, file), join(outdir, file));
}

function swap(root, staging) {
  const dist = join(root, 'dist');
  const old = join(root, 'dist.old');
  rmSync(old, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(staging, dist);
  rmSync(old, { recursive: true, force: true });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const root = join(import.meta.dirname, '..');
  const print = (line) => process.stderr.write(`[build] ${line}\n`);
  const started = Date.now();
  await withPrepareLock(root, () => build(root), print);
  print(`dist/ built in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}
