import { randomUUID } from 'node:crypto';
import { link, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readIfExists } from './atomic-file.js';
import { isSameProcess, processInfo } from './process-table.js';

/** The content of a lock file. `nonce` distinguishes two locks of one path. */
export interface LockHolder {
  pid: number;
  startedAt: string;
  since: string;
  nonce: string;
}

/** A lock that this process holds. */
export interface HeldLock {
  release(): Promise<void>;
}

/** Age at which the `.breaking` marker of a process that died while it broke a lock is removed. */
const STALE_MARKER_MS = 10_000;

/**
 * Takes the lock file, or returns its holder. A lock whose process has ended, or whose pid now belongs to another process, is broken.
 * Works between processes of one machine.
 */
export async function tryLock(path: string): Promise<HeldLock | { holder: LockHolder }> {
  await mkdir(dirname(path), { recursive: true });
  for (;;) {
    const lock = await create(path);
    if (lock) return lock;
    const text = await readIfExists(path);
    if (text === undefined) continue;
    const holder = parseHolder(text);
    if (holder && (await isSameProcess(holder))) return { holder };
    await breakStale(path, text);
  }
}

/**
 * Reserves a data directory for this process, because two platforms on one directory would adopt and stop each other's servers.
 * @throws Error with the pid that holds the directory, and what to do
 */
export async function lockDataDir(dir: string): Promise<HeldLock> {
  const lock = await tryLock(join(dir, 'platform.lock'));
  if (!('holder' in lock)) return lock;
  const { pid, since } = lock.holder;
  throw new Error(
    `The data directory ${dir} is in use by process ${pid}, which runs the platform on it since ${since}. ` +
      `Stop that one first (kill ${pid}), or give this one a data directory of its own (README.md, "Data directory").`,
  );
}

/** Waits for the lock file. Calls `onWait` with the holder about every ten seconds while another process has it. */
export async function waitForLock(path: string, onWait: (holder: LockHolder) => void): Promise<HeldLock> {
  const pollMs = 200;
  for (let polls = 0; ; polls += 1) {
    const lock = await tryLock(path);
    if (!('holder' in lock)) return lock;
    if (polls % 50 === 0) onWait(lock.holder);
    await sleep(pollMs);
  }
}

/** Links a complete file to the path, so that no process reads a partial lock. */
async function create(path: string): Promise<HeldLock | undefined> {
  const self = await processInfo(process.pid);
  if (!self) throw new Error('this process is not in the process table');
  const nonce = randomUUID();
  const holder: LockHolder = {
    pid: process.pid,
    startedAt: self.startedAt,
    since: new Date().toISOString(),
    nonce,
  };
  const temporary = `${path}.${nonce}`;
  await writeFile(temporary, JSON.stringify(holder), { mode: 0o644, flag: 'wx' });
  try {
    if (!(await tryLink(temporary, path))) return undefined;
  } finally {
    await rm(temporary, { force: true });
  }
  return { release: () => release(path, nonce) };
}

async function release(path: string, nonce: string): Promise<void> {
  const text = await readIfExists(path);
  if (text !== undefined && parseHolder(text)?.nonce === nonce) await rm(path, { force: true });
}

/**
 * Removes the stale lock and no other. Only one process can link it to the marker, and the marker then shows which lock was at the path
 * at that moment.
 */
async function breakStale(path: string, staleText: string): Promise<void> {
  const marker = `${path}.breaking`;
  if (!(await tryLink(path, marker))) return removeStaleMarker(marker);
  try {
    if ((await readIfExists(marker)) === staleText) await rm(path, { force: true });
  } finally {
    await rm(marker, { force: true });
  }
}

async function removeStaleMarker(marker: string): Promise<void> {
  const found = await stat(marker).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found && Date.now() - found.ctimeMs > STALE_MARKER_MS) await rm(marker, { force: true });
  else await sleep(20);
}

/** Creates a hard link. @returns false when `to` exists or `from` does not */
async function tryLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EEXIST' || code === 'ENOENT') return false;
    throw error;
  }
}

function parseHolder(text: string): LockHolder | undefined {
  try {
    const value = JSON.parse(text) as Partial<LockHolder>;
    if (typeof value.pid !== 'number' || typeof value.startedAt !== 'string') return undefined;
    return { pid: value.pid, startedAt: value.startedAt, since: value.since ?? '', nonce: value.nonce ?? '' };
  } catch {
    return undefined; // every lock is written completely, so an unreadable one has no holder
  }
}
