import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';

/**
 * Bundles the SDK's client for browsers: one ES module that needs no other file, with its source map.
 * As a program: `node scripts/publish/browser-bundle.mjs OUTFILE`.
 * @param {string} root the checkout
 * @param {string} outfile
 */
export async function bundleForBrowsers(root, outfile) {
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['sdk/browser/index.ts'],
    outfile,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    sourcemap: 'linked',
    legalComments: 'none',
    logLevel: 'warning',
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await bundleForBrowsers(join(import.meta.dirname, '..', '..'), process.argv[2] ?? 'index.js');
}
