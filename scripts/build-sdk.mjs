/** Builds the package in sdk/: JavaScript and declarations of everything that its index imports, and the licence, in sdk/dist/. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const outdir = join(root, 'sdk', 'dist');
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

rmSync(outdir, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'sdk')], { stdio: ['ignore', 2, 2] });
if (status !== 0) process.exit(status ?? 1);
copyFileSync(join(root, 'LICENSE'), join(outdir, 'LICENSE'));
