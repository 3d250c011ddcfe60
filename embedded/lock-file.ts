import { randomUUID } from 'node:crypto';
import { link, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readIfExists } from './atomic-file.js';
import { isSameProcess, processInfo } from './process-table.js';

/** What a lock file says about its holder. `nonce` tells two locks of one path apart. */
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

/** Milliseconds after which the marker of a breaker that died between its two steps is taken away. */
const BREAKER_DEAD_MS = 10_000;

/**
 * Takes the lock file, or says who holds it. A lock whose process has ended, or whose pid belongs to another process by
 * now, is broken. Works between processes of one machine.
 */
export async function tryLock(path: string): Promise<HeldLock | { holder: LockHolder }> {
  await mkdir(dirname(path), { recursive: true });
  for (;;) {
    const mine = await create(path);
    if (mine) return mine;
    const text = await readIfExists(path);
    if (text === undefined) continue;
    const holder = parseHolder(text);
    if (holder && (await isSameProcess(holder))) return { holder };
    await breakStale(path, text);
  }
}

/** Waits for the lock file. `onWait` is called about every ten seconds, with the holder, while another process has it. */
export async function waitForLock(path: string, onWait: (holder: LockHolder) => void): Promise<HeldLock> {
  const pollMs = 200;
  for (let polls = 0; ; polls += 1) {
    const answer = await tryLock(path);
    if (!('holder' in answer)) return answer;
    if (polls % 50 === 0) onWait(answer.holder);
    await sleep(pollMs);
  }
}

/** The content is written before the name appears, so nobody ever reads half a lock. */
async function create(path: string): Promise<HeldLock | undefined> {
  const self = await processInfo(process.pid);
  if (!self) throw new Error('this process does not see itself in the process table');
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
    if (!(await linked(temporary, path))) return undefined;
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
 * Removes the stale lock and no other: linking it to the marker succeeds for one breaker only, and what the marker then
 * shows is what was under the name at that instant.
 */
async function breakStale(path: string, staleText: string): Promise<void> {
  const marker = `${path}.breaking`;
  if (!(await linked(path, marker))) return clearDeadBreaker(marker);
  try {
    if ((await readIfExists(marker)) === staleText) await rm(path, { force: true });
  } finally {
    await rm(marker, { force: true });
  }
}

async function clearDeadBreaker(marker: string): Promise<void> {
  const found = await stat(marker).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found && Date.now() - found.ctimeMs > BREAKER_DEAD_MS) await rm(marker, { force: true });
  else await sleep(20);
}

/** False when the new name exists already or the old one is gone. */
async function linked(from: string, to: string): Promise<boolean> {
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
    return undefined; // a lock that does not read was not written by a living holder
  }
}
