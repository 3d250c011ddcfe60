import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../contracts/a2a.js';
import { isTerminal } from '../../contracts/messages.js';
import { PlatformError } from '../../runtime/errors.js';
import { settledWithin } from '../../runtime/settled-within.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { LiveMessage } from '../dispatch/fast-path.js';
import { findMessage, type MessageWithRequest } from '../read/read.js';
import { taskOf } from '../read/task.js';
import { EventQueue } from './event-queue.js';

/** How often a watcher looks at the row although nobody told it of a change: a notice lost with a node costs at most this. */
export const FALLBACK_MS = 5_000;
/** How long a message on the fast path is waited for without more ado; about when its workflow takes it. */
const LIVE_MS = 2_000;
/** For how long, and how often, a stream asks for its row again while the database cannot be reached. */
const AWAY_MS_MAX = 60_000;
const AWAY_PAUSE_MS = 500;

export type WatchCore = Pick<MessageCore, 'db' | 'bus'>;

/** Whether a caller has nothing more to wait for: terminal, or a human's turn. */
export function isResting(state: string): boolean {
  return isTerminal(state) || state === 'input-required';
}

/** @throws PlatformError NOT_FOUND */
async function readWatched(core: WatchCore, ref: MessageRef): Promise<MessageWithRequest> {
  const found = await findMessage(core.db, ref.tenant_id, ref.message_id);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  return found;
}

/**
 * As `readWatched`, for who is in the middle of a stream: a database that is away, or has no connection free, is asked again for a minute.
 * @throws PlatformError SERVICE_UNAVAILABLE when it stays away, or the signal aborts meanwhile
 */
export async function readPatiently(
  core: WatchCore,
  ref: MessageRef,
  signal: AbortSignal,
): Promise<MessageWithRequest> {
  const until = performance.now() + AWAY_MS_MAX;
  for (;;) {
    try {
      return await readWatched(core, ref);
    } catch (error) {
      const isAway = error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
      if (!isAway || signal.aborted || performance.now() > until) throw error;
      await delay(AWAY_PAUSE_MS, undefined, { signal }).catch(() => undefined); // an abort shows above
    }
  }
}

/** How long a caller waits for a task, and what of it. */
export interface TaskWait {
  waitMs: number;
  /** Aborts when the caller leaves or the process drains; asked for when the wait lasts. */
  signal: () => AbortSignal;
  blocking: boolean;
  historyLength?: number;
}

/** A message that was put on the record by the caller's own request. `live`: it takes the fast path here. */
export interface JustAccepted {
  live: LiveMessage | null;
}

/**
 * The task of a message that takes the fast path here, once T2 has ended it; null when it has to be looked up. Most are over in no time,
 * so what a longer wait takes (a signal for the caller's leaving, a place on the bus) is set up after `LIVE_MS` only.
 */
async function liveTask(live: LiveMessage, options: TaskWait): Promise<Task | null> {
  if (!options.blocking) return taskOf(live.row, null, options);
  const end = (await settledWithin(live.ended, Math.min(options.waitMs, LIVE_MS)))?.message;
  return end && isTerminal(end.state) ? taskOf({ ...live.row, ...end }, null, options) : null;
}

/**
 * Waits until a message is terminal or waits for a human, `waitMs` at most, and gives the task as it then is.
 * With `blocking: false` the task is given at once.
 */
export async function waitForTask(
  core: WatchCore,
  ref: MessageRef,
  options: TaskWait,
  accepted: JustAccepted | null = null,
): Promise<Task> {
  const until = Date.now() + (options.blocking ? options.waitMs : 0);
  const live = accepted?.live;
  const quick = live && (await liveTask(live, options));
  if (quick) return quick;
  const signal = options.signal();
  const shape = options.historyLength === undefined ? {} : { historyLength: options.historyLength };
  const feed = new EventQueue(core, ref, null);
  try {
    // What was put on the record just now has not ended unless that has been told.
    if (accepted && !live && options.blocking) await feed.take(Math.min(options.waitMs, FALLBACK_MS), signal);
    for (;;) {
      const { row, request } = await readWatched(core, ref);
      const leftMs = until - Date.now();
      if (isResting(row.state) || leftMs <= 0 || signal.aborted) return taskOf(row, request, shape);
      await feed.take(Math.min(leftMs, FALLBACK_MS), signal);
    }
  } finally {
    feed[Symbol.dispose]();
  }
}
