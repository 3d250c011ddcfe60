/**
 * Runs before `start`, `demo`, `fleet`, `test` and `check`: installs the locked dependencies and builds `dist/`, each only when missing or
 * stale. Has no dependencies itself, and prints to standard error.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withPrepareLock } from './mutex.mjs';
import { isBuilt } from './sources.mjs';

const MIN_NODE = [20, 19];
const PROGRESS_MS = 10_000;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampPath = join(root, 'node_modules', '.agent-fleet-lock');

function print(line) {
  process.stderr.write(`[prepare] ${line}\n`);
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return;
  throw new Error(
    `Node ${MIN_NODE.join('.')} or newer is required; this is ${process.versions.node} (${process.execPath})`,
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

/** Whether `node_modules` matches the lock file, for example after `npm ci` by hand. */
function treeMatchesLock() {
  const installedPath = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedPath)) return false;
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const installed = JSON.parse(readFileSync(installedPath, 'utf8')).packages;
  return Object.entries(locked).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    if (!found) return mayBeAbsent(entry);
    return found.version === entry.version && existsSync(join(root, path, 'package.json'));
  });
}

/** Whether npm may leave the package out: an optional package of another system, or a dependency of one. */
function mayBeAbsent(entry) {
  const excludes = (list, value) => Array.isArray(list) && !list.includes(value);
  const namesNoPlatform = !entry.os && !entry.cpu;
  const isForOtherSystem = excludes(entry.os, process.platform) || excludes(entry.cpu, process.arch) || 'libc' in entry;
  return entry.optional === true && (namesNoPlatform || isForOtherSystem);
}

async function install() {
  if (!treeMatchesLock()) {
    print('installing the locked dependencies (npm ci) …');
    const args = [
      'ci',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--include=dev',
      '--include=optional',
      '--loglevel=error',
    ];
    const npm = process.env.npm_execpath ?? '';
    const isNpm = basename(npm).startsWith('npm-cli');
    await timed('dependencies installed', 'npm ci', () =>
      isNpm ? run(process.execPath, [npm, ...args]) : run('npm', args),
    );
  }
  writeFileSync(stampPath, expectedStamp());
}

async function compile() {
  print('building dist/ …');
  await timed('dist/ built', 'the build', async () => {
    const { build } = await import('./build.mjs');
    await build(root);
  });
}

/** Runs one step. Prints progress every ten seconds, and the duration at the end. */
async function timed(done, what, step) {
  const started = Date.now();
  const seconds = () => ((Date.now() - started) / 1000).toFixed(1);
  const timer = setInterval(() => print(`… ${what} still runs (${seconds()} s)`), PROGRESS_MS);
  try {
    await step();
  } catch (error) {
    throw new Error(`${what} failed after ${seconds()} s: ${error.message}`);
  } finally {
    clearInterval(timer);
  }
  print(`${done} in ${seconds()} s`);
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ended with ${signal ?? code}; see the lines above`));
    });
  });
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
