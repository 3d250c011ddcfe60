import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 200;
/** How often the holder touches its lock. */
const TOUCH_MS = 5_000;
/** A lock that was not touched for this long is abandoned, even if its process id exists. */
const ABANDONED_MS = 60_000;

/**
 * Runs `work` while no other process prepares the same checkout. A lock whose holder is dead is taken over.
 * @template T
 * @param {string} root the checkout
 * @param {() => Promise<T>} work
 * @param {(line: string) => void} print receives a line when the lock is held by another process
 * @returns {Promise<T>}
 */
export async function withPrepareLock(root, work, print) {
  const path = join(root, '.prepare.lock');
  const owner = `${process.pid} ${hostname()}\n`;
  for (let waiting = false; !tryCreate(path, owner); waiting = true) {
    if (!waiting)
      print(`waiting for another command that prepares this checkout (process ${readOwner(path).split(' ')[0]})`);
    breakIfAbandoned(path);
    await sleep(POLL_MS);
  }
  const touch = setInterval(() => touchOwn(path), TOUCH_MS);
  try {
    return await work();
  } finally {
    clearInterval(touch);
    if (readOwner(path) === owner) rmSync(path, { force: true });
  }
}

function tryCreate(path, owner) {
  try {
    writeFileSync(path, owner, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves an abandoned lock aside. If another process took the lock in the same moment, it is put back. */
function breakIfAbandoned(path) {
  const owner = readOwner(path);
  if (owner === '' || !isAbandoned(path, owner)) return;
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    if (readOwner(aside) !== owner) linkSync(aside, path);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function isAbandoned(path, owner) {
  const [pid, host] = owner.trim().split(' ');
  if (host === hostname() && !isAlive(Number(pid))) return true;
  return Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > ABANDONED_MS;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The content of the lock; '' without one. */
function readOwner(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return '';
    throw error;
  }
}

function touchOwn(path) {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}
