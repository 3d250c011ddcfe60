import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../contracts/a2a/a2a.js';
import { asksPerson, isTerminal } from '../../contracts/message-states.js';
import { isTransient, PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';
import { findMessage, type MessageWithRequest } from '../read/read.js';
import type { MessageRow } from '../read/rows.js';
import { type TaskWait, taskOf } from '../read/task.js';
import { EventQueue } from './event-queue.js';

/** A stream tries to read its row for this long, at this interval, while the database is away. */
const RETRY_FOR_MS = 60_000;
const RETRY_PAUSE_MS = 500;

export type TaskCore = Pick<MessageCore, 'db' | 'bus' | 'clocks' | 'local' | 'changes'>;

/** Whether a blocking call returns: the state is terminal, or it is a human's turn. */
export function endsCall(state: string): boolean {
  return isTerminal(state) || asksPerson(state);
}

/** What was read before, when the bus has been silent: the message is read again only if it has changed. Events in the queue end that check. */
export interface Known {
  message: MessageWithRequest;
  queue: EventQueue;
  signal: AbortSignal;
}

/** @throws PlatformError NOT_FOUND */
async function readMessageOf(core: TaskCore, ref: MessageRef, known?: Known): Promise<MessageWithRequest> {
  if (known) {
    const { message, queue, signal } = known;
    if ((await queue.unlessEvents(core.changes.hasChanged(message.row), signal)) !== true) return message;
  }
  const found = await findMessage(core.db, ref.tenant_id, ref.message_id);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  return found;
}

/**
 * Reads a message for an open stream. While the database is away, or has no free connection, it retries for a minute.
 * @throws PlatformError NOT_FOUND; SERVICE_UNAVAILABLE after that minute, or when the signal aborts meanwhile
 */
export async function readWithRetry(
  core: TaskCore,
  ref: MessageRef,
  signal: AbortSignal,
  known?: Known,
): Promise<MessageWithRequest> {
  const until = performance.now() + RETRY_FOR_MS;
  for (;;) {
    try {
      return await readMessageOf(core, ref, known);
    } catch (error) {
      if (!isTransient(error) || signal.aborted || performance.now() > until) throw error;
      await delay(RETRY_PAUSE_MS, undefined, { signal }).catch(() => undefined); // the next attempt sees the abort
    }
  }
}

/**
 * The task of a message once it is terminal or waits for a human, or as it is at `until`.
 * @param written the row, where the caller's request has just written it and nobody has changed it since
 */
export async function waitForTask(
  core: TaskCore,
  ref: MessageRef,
  options: TaskWait,
  written: MessageRow | null = null,
): Promise<Task> {
  const { until } = options;
  const signal = options.signal();
  using queue = new EventQueue(core, ref, null);
  const nextChange = () => queue.take(Math.min(until - Date.now(), core.clocks.rereadMs), signal);
  using end = core.local.follow(ref.message_id);
  let before = written;
  if (before) await nextChange(); // the bus retains notices of the time between the commit and here
  let known: Known | undefined;
  for (;;) {
    if (before && end.ended) return taskOf({ ...before, ...end.ended }, null, options);
    const current = await readMessageOf(core, ref, known);
    const { row, request } = current;
    before = row;
    if (endsCall(row.state) || Date.now() >= until || signal.aborted) return taskOf(row, request, options);
    const { changed } = await nextChange();
    // At `until` a call reads the row at once, and does not wait for the shared check.
    known = changed || Date.now() >= until || signal.aborted ? undefined : { message: current, queue, signal };
  }
}
