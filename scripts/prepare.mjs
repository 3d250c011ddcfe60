/**
 * Runs before `start`, `demo`, `fleet`, `test` and `check`: installs the locked dependencies and builds `dist/`, each only when missing or
 * stale. Has no dependencies itself, and prints to standard error.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmCi, timed, treeMatchesLock } from './npm-ci.mjs';
import { withPrepareLock } from './prepare-lock.mjs';
import { isBuilt } from './sources.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url))); // import.meta.dirname is newer than some Node that this refuses
const stampPath = join(root, 'node_modules', '.agent-fleet-lock');

function print(line) {
  process.stderr.write(`[prepare] ${line}\n`);
}

function checkNode() {
  const { node } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines;
  const [minMajor, minMinor] = node.match(/\d+/g).map(Number);
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > minMajor || (major === minMajor && minor >= minMinor)) return;
  throw new Error(
    `Node ${minMajor}.${minMinor} or newer is required; this is ${process.versions.node} (${process.execPath})`,
  );
}

/** Digest of what `node_modules` depends on: the lock file and this system. */
function expectedStamp() {
  const lock = readFileSync(join(root, 'package-lock.json'));
  return createHash('sha256').update(lock).update(`${process.platform} ${process.arch}`).digest('hex');
}

function isInstalled() {
  return existsSync(stampPath) && readFileSync(stampPath, 'utf8') === expectedStamp();
}

async function install() {
  if (!treeMatchesLock(root)) {
    print('installing the locked dependencies (npm ci) …');
    await timed('dependencies installed', 'npm ci', () => npmCi(root, ['--include=dev', '--include=optional']), print);
  }
  writeFileSync(stampPath, expectedStamp());
}

async function compile() {
  print('building dist/ …');
  const step = async () => {
    const { build } = await import('./build.mjs');
    await build(root);
  };
  await timed('dist/ built', 'the build', step, print);
}

async function prepare() {
  checkNode();
  if (isInstalled() && isBuilt(root)) return;
  await withPrepareLock(
    root,
    async () => {
      if (!isInstalled()) await install();
      if (!isBuilt(root)) await compile();
    },
    print,
  );
}

prepare().catch((error) => {
  print(error.message);
  process.exitCode = 1;
});
