import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ArtifactUpdate, StatusUpdate, StreamEvent, Task } from '../../contracts/a2a/a2a.js';
import { isTerminal } from '../../contracts/message-states.js';
import type { MessageRef } from '../core.js';
import type { DispatchEnd, LiveMessage } from '../dispatch/dispatches.js';
import type { MessageWithRequest } from '../read/read.js';
import type { MessageRow } from '../read/rows.js';
import { agentMessage, taskOf } from '../read/task.js';
import type { BusEvent, BusItem } from './bus.js';
import { EventQueue } from './event-queue.js';
import { StreamPosition } from './stream-position.js';
import { endsCall, type Known, readWithRetry, type TaskCore } from './wait-for-task.js';

/** A stream that continues after a cursor waits this long for the bus's retained events; then it begins with the task. */
const CATCH_UP_MS = 2_000;

export interface StreamOptions {
  /** Aborts when the reader leaves or the process drains: the stream then ends. */
  signal: AbortSignal;
  /** The cursor of the last event that the reader has. A cursor of another message is ignored. */
  after?: string;
  /** Continues while a human is asked, until a terminal state, as in A2A 1.0. */
  untilTerminal?: boolean;
}

/** An event of a stream, and the cursor with which any node continues after it. */
export interface StreamItem {
  cursor: string;
  event: StreamEvent;
}

type Output = Extract<BusEvent, { kind: 'artifact' }>;

function artifactUpdate(row: MessageRow, { artifact, append, last_chunk }: Omit<Output, 'kind'>): ArtifactUpdate {
  const { message_id: taskId, session_id: contextId } = row;
  return { kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk: last_chunk };
}

function statusUpdate(task: Task, final: boolean): StatusUpdate {
  const { id: taskId, contextId, status, metadata } = task;
  return { kind: 'status-update', taskId, contextId, status, final, ...(final && metadata && { metadata }) };
}

/** The row of a message as it was read. `isLast`: the stream ends with its state. */
interface Snapshot {
  current: MessageWithRequest;
  isLast: boolean;
}

/** The stream event of a bus event; null when there is nothing to send. Moves the position past it. */
function streamEventOf(
  { cursor, event }: BusItem,
  position: StreamPosition,
  current: MessageWithRequest,
): StreamEvent | null {
  position.busCursor = cursor;
  switch (event.kind) {
    case 'artifact':
      // If the reader lacks its beginning, the whole artifact is sent at the end.
      return position.shown.show(event.artifact, event.append) ? artifactUpdate(current.row, event) : null;
    case 'status_text': {
      const message = agentMessage(current.row, `status-${cursor}`, [{ kind: 'text', text: event.text }]);
      return { ...statusUpdate(taskOf(current.row, current.request), false), status: { state: 'working', message } };
    }
    case 'restarted':
      return { ...statusUpdate(taskOf(current.row, current.request), false), metadata: { restarted: true } };
    case 'gap':
      position.shown.close();
      return null;
    case 'changed':
    case 'caught_up':
      return null;
    default:
      return event satisfies never;
  }
}

/** Emits the events of a batch and the state of the row. A state that ends a call comes after the events and the missing artifacts, any other before. */
function* emit(position: StreamPosition, { current, isLast }: Snapshot, events: BusItem[]): Generator<StreamItem> {
  const isKnown = position.hasState(current);
  if (isKnown && isLast) return;
  const task = taskOf(current.row, current.request);
  const rests = endsCall(current.row.state);
  if (!rests && !isKnown) {
    position.noteState(current);
    yield { event: statusUpdate(task, false), cursor: position.cursor };
  }
  for (const item of isLast && position.isAtEnd ? [] : events) {
    const event = streamEventOf(item, position, current);
    if (event) yield { event, cursor: position.cursor };
  }
  if (!rests || isKnown) return;
  for (const artifact of current.row.artifacts) {
    if (position.shown.has(artifact)) continue;
    position.shown.show(artifact, false);
    const event = artifactUpdate(current.row, { artifact, append: false, last_chunk: true });
    yield { event, cursor: position.cursor };
  }
  position.noteState(current);
  yield { event: statusUpdate(task, isLast), cursor: position.cursor };
}

/** Makes the function that reads the message: from the database, or from memory if this process has sent it. @param live null where it has not */
function createReader(core: TaskCore, ref: MessageRef, live: LiveMessage | null, signal: AbortSignal) {
  let end: DispatchEnd['message'] | undefined;
  void live?.ended.then((ended) => {
    end = ended.message;
  });
  return async (known?: Known): Promise<MessageWithRequest> => {
    if (live && end === undefined) await Promise.race([live.ended, nextTurn()]); // the bus reports the end before `ended` settles
    if (live && end && isTerminal(end.state)) return { row: { ...live.row, ...end }, request: null };
    return readWithRetry(core, ref, signal, known);
  };
}

/** The retained events for a reader that continues. `isWhole`: none is missing, so that the task need not be sent first. */
async function catchUp(
  queue: EventQueue,
  position: StreamPosition,
  signal: AbortSignal,
): Promise<{ events: BusItem[]; isWhole: boolean }> {
  const isCaughtUp = await queue.caughtUp(CATCH_UP_MS, signal);
  const { events } = queue.drain();
  const gap = events.find(({ event }) => event.kind === 'gap');
  if (gap) position.busCursor = gap.cursor;
  return { events, isWhole: isCaughtUp && !gap };
}

/**
 * The events of a message's stream: first the task, then artifact and status updates, last a status update with `final: true` at a
 * terminal state or at `input-required` (docs/a2a.md). After a cursor: exactly the events after it. If they are no longer retained: the
 * current task, which replaces what the reader has, and the events after it. The stream ends early when the signal aborts. While the
 * database is away it pauses, and fails after a minute.
 */
export async function* streamTask(
  core: TaskCore,
  ref: MessageRef,
  { signal, after, untilTerminal = false }: StreamOptions,
  live: LiveMessage | null = null,
): AsyncGenerator<StreamItem> {
  const isOver = untilTerminal ? isTerminal : endsCall;
  const snapshotOf = (current: MessageWithRequest): Snapshot => ({ current, isLast: isOver(current.row.state) });
  let position = after === undefined ? null : StreamPosition.parse(ref, after);
  using queue = new EventQueue(core, ref, position?.busCursor ?? 0);
  const read = createReader(core, ref, live, signal);
  /** Reads the row, and adds the events that came before that, which go before a state that ends a call. */
  const readSnapshot = async (events: BusItem[], known?: Known): Promise<Snapshot> => {
    const current = await read(known);
    if (endsCall(current.row.state)) events.push(...queue.drain().events);
    return snapshotOf(current);
  };
  const { events, isWhole } = position ? await catchUp(queue, position, signal) : { events: [], isWhole: false };
  let snapshot = live ? snapshotOf({ row: live.row, request: null }) : await readSnapshot(events);
  if (!position || !isWhole) {
    const { current, isLast } = snapshot;
    position = StreamPosition.afterTask(ref, position?.busCursor ?? 0, current, isLast);
    yield { event: taskOf(current.row, current.request), cursor: position.cursor };
  }
  yield* emit(position, snapshot, events);
  while (!snapshot.isLast && !signal.aborted) {
    const batch = await queue.take(core.clocks.rereadMs, signal);
    if (batch.changed) snapshot = await readSnapshot(batch.events);
    else if (batch.events.length === 0 && !signal.aborted)
      snapshot = await readSnapshot(batch.events, { message: snapshot.current, queue, signal });
    yield* emit(position, snapshot, batch.events);
  }
}
