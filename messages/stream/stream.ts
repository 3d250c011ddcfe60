import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ArtifactUpdate, StatusUpdate, StreamEvent, Task } from '../../contracts/a2a.js';
import { isTerminal } from '../../contracts/messages.js';
import type { MessageRef } from '../core.js';
import type { DispatchEnd } from '../dispatch/dispatches.js';
import type { LiveMessage } from '../dispatch/fast-path.js';
import type { MessageWithRequest } from '../read/read.js';
import type { MessageRow } from '../read/rows.js';
import { agentMessage, taskOf } from '../read/task.js';
import type { BusEvent, PlacedEvent } from './bus.js';
import { EventQueue } from './event-queue.js';
import { StreamFollower } from './stream-position.js';
import { FALLBACK_MS, isResting, readPatiently, type WatchCore } from './watch.js';

/** How long a stream that goes on waits for what the bus has kept; beyond, it begins with the task. */
const CATCH_UP_MS = 2_000;

export interface StreamOptions {
  /** Aborts when the reader leaves or the process drains: the stream then ends where it is. */
  signal: AbortSignal;
  /** The cursor of the last event that the reader has; one that is none of this message counts as none. */
  after?: string;
  /** Goes on while a human is asked, until a terminal state, as A2A 1.0 has it. */
  untilTerminal?: boolean;
}

/** An event of a stream, and the cursor by which any node goes on exactly after it. */
export interface StreamItem {
  cursor: string;
  event: StreamEvent;
}

function artifactUpdate(row: MessageRow, { artifact, append, last_chunk }: Omit<Output, 'kind'>): ArtifactUpdate {
  const { message_id: taskId, session_id: contextId } = row;
  return { kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk: last_chunk };
}
type Output = Extract<BusEvent, { kind: 'artifact' }>;

function statusUpdate(task: Task, final: boolean): StatusUpdate {
  return {
    kind: 'status-update',
    taskId: task.id,
    contextId: task.contextId,
    status: task.status,
    final,
    ...(final && task.metadata && { metadata: task.metadata }),
  };
}

/** What an event of the bus is to the reader, who stands before it; null: nothing that can be shown. */
function shownOf(
  { cursor, event }: PlacedEvent,
  place: StreamFollower,
  current: MessageWithRequest,
): StreamEvent | null {
  place.position = cursor;
  switch (event.kind) {
    case 'artifact':
      // One whose beginning the reader lacks is sent whole at the end.
      return place.shown.show(event.artifact, event.append) ? artifactUpdate(current.row, event) : null;
    case 'status_text': {
      const message = agentMessage(current.row, `status-${cursor}`, [{ kind: 'text', text: event.text }]);
      return { ...statusUpdate(taskOf(current.row, current.request), false), status: { state: 'working', message } };
    }
    case 'gap':
      place.shown.close();
      return null;
    case 'changed':
    case 'caught_up':
      return null;
    default:
      return event satisfies never;
  }
}

/**
 * What came: after the state that it came in, or before the state in which the message then rests.
 * @param over nothing comes after that state
 */
function* tell(place: StreamFollower, { current, over }: Look, events: PlacedEvent[]): Generator<StreamItem> {
  const known = place.knows(current);
  if (known && over) return;
  const task = taskOf(current.row, current.request);
  const rests = isResting(current.row.state);
  if (!rests && !known) {
    place.say(current);
    yield { event: statusUpdate(task, false), cursor: place.cursor };
  }
  if (!over || !place.beganAtEnd) yield* tellEvents(place, current, events);
  if (!rests || known) return;
  for (const artifact of current.row.artifacts) {
    if (place.shown.has(artifact)) continue;
    place.shown.show(artifact, false);
    yield { event: artifactUpdate(current.row, { artifact, append: false, last_chunk: true }), cursor: place.cursor };
  }
  place.say(current);
  yield { event: statusUpdate(task, over), cursor: place.cursor };
}

function* tellEvents(place: StreamFollower, current: MessageWithRequest, events: PlacedEvent[]): Generator<StreamItem> {
  for (const placed of events) {
    const event = shownOf(placed, place, current);
    if (event) yield { event, cursor: place.cursor };
  }
}

/**
 * Looks at the message: the row in the database, unless it takes the fast path here and has ended, which this process then knows.
 * @param live null where it does not
 */
function lookerAt(core: WatchCore, ref: MessageRef, live: LiveMessage | null, signal: AbortSignal) {
  let end: DispatchEnd['message'] | undefined;
  void live?.ended.then((ended) => {
    end = ended.message;
  });
  return async (): Promise<MessageWithRequest> => {
    if (live && end === undefined) await nextTurn(); // it is told of before its own process has taken note
    if (live && end && isTerminal(end.state)) return { row: { ...live.row, ...end }, request: null };
    return readPatiently(core, ref, signal);
  };
}

/** A look at the row. `over`: the stream ends with it. */
interface Look {
  current: MessageWithRequest;
  over: boolean;
}

/** What was kept for one who goes on. `whole`: without a gap, so that the task need not be given first. */
async function catchUp(
  feed: EventQueue,
  place: StreamFollower,
  signal: AbortSignal,
): Promise<{ events: PlacedEvent[]; whole: boolean }> {
  const whole = await feed.caughtUp(CATCH_UP_MS, signal);
  const { events } = feed.drain();
  const gap = events.find(({ event }) => event.kind === 'gap');
  if (gap) place.position = gap.cursor;
  return { events, whole: whole && !gap };
}

/**
 * The events of a message's stream: first the task, then artifact and status updates, last a status update with `final: true` at a
 * terminal state or at `input-required` (a2a.md). After a cursor: what came after it, no more and no less. Where that is no longer
 * kept: the task as it is, which replaces what the reader has, and what follows. Ends early when the signal aborts. A database that is away
 * holds it up, and ends it after a minute only.
 */
export async function* streamTask(
  core: WatchCore,
  ref: MessageRef,
  { signal, after, untilTerminal = false }: StreamOptions,
  live: LiveMessage | null = null,
): AsyncGenerator<StreamItem> {
  const isOver = untilTerminal ? isTerminal : isResting;
  const lookAt = (current: MessageWithRequest): Look => ({ current, over: isOver(current.row.state) });
  let place = after === undefined ? null : StreamFollower.read(ref, after);
  using feed = new EventQueue(core, ref, place?.position ?? 0);
  const read = lookerAt(core, ref, live, signal);
  /** Of a message that rests, what was told before the row was read is told before its end. */
  const look = async (events: PlacedEvent[]): Promise<Look> => {
    const current = await read();
    if (isResting(current.row.state)) events.push(...feed.drain().events);
    return lookAt(current);
  };
  const { events, whole } = place ? await catchUp(feed, place, signal) : { events: [], whole: false };
  let seen = live ? lookAt({ row: live.row, request: null }) : await look(events);
  if (!place || !whole) {
    place = StreamFollower.atTask(ref, place?.position ?? 0, seen.current, seen.over);
    yield { event: taskOf(seen.current.row, seen.current.request), cursor: place.cursor };
  }
  yield* tell(place, seen, events);
  while (!seen.over && !signal.aborted) {
    const told = await feed.take(FALLBACK_MS, signal);
    if (told.changed || told.events.length === 0) seen = await look(told.events);
    yield* tell(place, seen, told.events);
  }
}
