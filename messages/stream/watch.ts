import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../contracts/a2a/a2a.js';
import { isTerminal } from '../../contracts/api/messages.js';
import { PlatformError } from '../../runtime/errors.js';
import { settledWithin } from '../../runtime/settled-within.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { LiveMessage } from '../dispatch/fast-path.js';
import { findMessage, type MessageWithRequest } from '../read/read.js';
import { taskOf } from '../read/task.js';
import { EventQueue } from './event-queue.js';

/** A reader polls the row at this interval, in case a notice was lost. */
export const POLL_MS = 5_000;
/** A caller of the fast path waits this long before it subscribes to the bus; most messages have ended by then. */
const LIVE_MS = 2_000;
/** A stream tries to read its row for this long, at this interval, while the database is away. */
const RETRY_FOR_MS = 60_000;
const RETRY_PAUSE_MS = 500;

export type WatchCore = Pick<MessageCore, 'db' | 'bus'>;

/** Whether a blocking call returns: the state is terminal, or it is a human's turn. */
export function isResting(state: string): boolean {
  return isTerminal(state) || state === 'input-required';
}

/** @throws PlatformError NOT_FOUND */
async function readMessageOf(core: WatchCore, ref: MessageRef): Promise<MessageWithRequest> {
  const found = await findMessage(core.db, ref.tenant_id, ref.message_id);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  return found;
}

/**
 * Reads a message for an open stream. While the database is away, or has no free connection, it retries for a minute.
 * @throws PlatformError NOT_FOUND; SERVICE_UNAVAILABLE after that minute, or when the signal aborts meanwhile
 */
export async function readWithRetry(
  core: WatchCore,
  ref: MessageRef,
  signal: AbortSignal,
): Promise<MessageWithRequest> {
  const until = performance.now() + RETRY_FOR_MS;
  for (;;) {
    try {
      return await readMessageOf(core, ref);
    } catch (error) {
      const isAway = error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
      if (!isAway || signal.aborted || performance.now() > until) throw error;
      await delay(RETRY_PAUSE_MS, undefined, { signal }).catch(() => undefined); // the next attempt sees the abort
    }
  }
}

/** How a caller waits for a task. */
export interface TaskWait {
  waitMs: number;
  /** Aborts when the caller leaves or the process drains. Called only when the wait lasts. */
  signal: () => AbortSignal;
  blocking: boolean;
  historyLength?: number;
}

/** A message that the caller's own request accepted. `live`: it takes the fast path in this process. */
export interface JustAccepted {
  live: LiveMessage | null;
}

/**
 * The task of a message on the fast path once it has ended; null when its row must be read. Most messages end at once, so the signal and
 * the subscription of a longer wait are made after `LIVE_MS` only.
 */
async function liveTask(live: LiveMessage, options: TaskWait): Promise<Task | null> {
  if (!options.blocking) return taskOf(live.row, null, options);
  const end = (await settledWithin(live.ended, Math.min(options.waitMs, LIVE_MS)))?.message;
  return end && isTerminal(end.state) ? taskOf({ ...live.row, ...end }, null, options) : null;
}

/** The task of a message once it rests, or as it is at `until`. @param hasChanged whether its row may have changed already */
async function watchTask(
  core: WatchCore,
  ref: MessageRef,
  options: TaskWait,
  until: number,
  hasChanged: boolean,
): Promise<Task> {
  const signal = options.signal();
  using queue = new EventQueue(core, ref, null);
  const nextChange = () => queue.take(Math.min(until - Date.now(), POLL_MS), signal);
  if (!hasChanged) await nextChange();
  for (;;) {
    const { row, request } = await readMessageOf(core, ref);
    if (isResting(row.state) || Date.now() >= until || signal.aborted) return taskOf(row, request, options);
    await nextChange();
  }
}

/**
 * The task of a message once it is terminal or waits for a human, or after `waitMs` as it then is. With `blocking: false` it does not
 * wait.
 */
export async function waitForTask(
  core: WatchCore,
  ref: MessageRef,
  options: TaskWait,
  accepted: JustAccepted | null = null,
): Promise<Task> {
  const until = Date.now() + (options.blocking ? options.waitMs : 0);
  if (!accepted?.live) return watchTask(core, ref, options, until, !accepted || !options.blocking);
  return (await liveTask(accepted.live, options)) ?? watchTask(core, ref, options, until, true);
}
