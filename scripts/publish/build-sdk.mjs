/**
 * Builds the package in sdk/: JavaScript, declarations and source maps of everything that its entries import, and the bundle for
 * browsers, in sdk/dist/.
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundleForBrowsers } from './browser-bundle.mjs';

const root = join(import.meta.dirname, '..', '..');
const outdir = join(root, 'sdk', 'dist');
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

rmSync(outdir, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'sdk')], { stdio: ['ignore', 2, 2] });
if (status !== 0) process.exit(status ?? 1);
await bundleForBrowsers(root, join(outdir, 'browser', 'index.js'));
