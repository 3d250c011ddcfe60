import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { run } from './run.mjs';

const PROGRESS_MS = 10_000;
const OPTIONS = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];

/**
 * Installs what the lock file of a folder names. Resolves when npm ends with 0, else rejects; npm's own lines go to standard error.
 * @param {string} folder with `package.json` and `package-lock.json`
 * @param {string[]} more further options of `npm ci`
 */
export function npmCi(folder, more = []) {
  const args = ['ci', ...OPTIONS, ...more];
  const npm = process.env.npm_execpath ?? '';
  const isNpm = basename(npm).startsWith('npm-cli'); // of yarn or pnpm it is their own program
  return run(isNpm ? process.execPath : 'npm', isNpm ? [npm, ...args] : args, { cwd: folder });
}

/**
 * Whether `node_modules` of a folder matches its lock file, whoever installed it.
 * @param {string} folder with `package-lock.json`
 */
export function treeMatchesLock(folder) {
  const installedPath = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(installedPath)) return false;
  const locked = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')).packages;
  const installed = JSON.parse(readFileSync(installedPath, 'utf8')).packages;
  return Object.entries(locked).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    if (!found) return mayBeAbsent(entry);
    return found.version === entry.version && existsSync(join(folder, path, 'package.json'));
  });
}

/** Whether npm may leave the package out: an optional package of another system, or a dependency of one. */
function mayBeAbsent(entry) {
  const excludes = (list, value) => Array.isArray(list) && !list.includes(value);
  const namesNoPlatform = !entry.os && !entry.cpu;
  const isForOtherSystem = excludes(entry.os, process.platform) || excludes(entry.cpu, process.arch) || 'libc' in entry;
  return entry.optional === true && (namesNoPlatform || isForOtherSystem);
}

/**
 * Runs one step. Prints progress every ten seconds, and the duration at the end.
 * @param {string} done what is printed when it has ended
 * @param {string} what its name, for progress and errors
 * @param {() => Promise<void>} step
 * @param {(line: string) => void} print
 */
export async function timed(done, what, step, print) {
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
