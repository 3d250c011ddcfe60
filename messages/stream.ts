import type { ArtifactUpdate, StatusUpdate, StreamEvent, Task } from '../contracts/a2a.js';
import type { BusEvent, PlacedEvent } from './bus.js';
import type { MessageRef } from './core.js';
import { Feed, type Told } from './feed.js';
import type { MessageWithRequest } from './read.js';
import type { LiveMessage } from './short-way.js';
import { StreamPlace } from './stream-place.js';
import { agentMessage, taskOf } from './task.js';
import { FALLBACK_MS, isResting, readWatched, type WatchCore } from './watch.js';

/** How long a stream that goes on waits for what the bus has kept; beyond, it begins with the task. */
const CATCH_UP_MS = 2_000;

export interface StreamOptions {
  /** Aborts when the reader leaves or the process drains: the stream then ends where it is. */
  signal: AbortSignal;
  /** The cursor of the last event that the reader has; one that is none of this message counts as none. */
  after?: string;
}

/** An event of a stream, and the cursor by which any node goes on exactly after it. */
export interface StreamItem {
  cursor: string;
  event: StreamEvent;
}

function artifactUpdate(task: Task, { artifact, append, last_chunk }: Omit<Output, 'kind'>): ArtifactUpdate {
  const { id: taskId, contextId } = task;
  return { kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk: last_chunk };
}
type Output = Extract<BusEvent, { kind: 'artifact' }>;

function statusUpdate(task: Task): StatusUpdate {
  const final = isResting(task.status.state);
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
function shownOf({ cursor, event }: PlacedEvent, place: StreamPlace, current: MessageWithRequest): StreamEvent | null {
  const task = () => taskOf(current.row, current.request);
  place.position = cursor;
  switch (event.kind) {
    case 'artifact':
      // One whose beginning the reader lacks is sent whole at the end.
      return place.shown.show(event.artifact, event.append) ? artifactUpdate(task(), event) : null;
    case 'status_text': {
      const message = agentMessage(current.row, `status-${cursor}`, [{ kind: 'text', text: event.text }]);
      return { ...statusUpdate(task()), status: { state: 'working', message }, final: false };
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

/** What came: after the state that it came in, or before the state in which the message then rests. */
function* tell(place: StreamPlace, current: MessageWithRequest, events: PlacedEvent[]): Generator<StreamItem> {
  if (isResting(current.row.state)) {
    yield* tellEnd(place, current, events);
    return;
  }
  if (!place.knows(current)) {
    place.say(current);
    yield { event: statusUpdate(taskOf(current.row, current.request)), cursor: place.cursor };
  }
  yield* tellEvents(place, current, events);
}

function* tellEvents(place: StreamPlace, current: MessageWithRequest, events: PlacedEvent[]): Generator<StreamItem> {
  for (const placed of events) {
    const event = shownOf(placed, place, current);
    if (event) yield { event, cursor: place.cursor };
  }
}

/** The end of the stream: what came before it, what the reader lacks of the artifacts, and the state; nothing to who has been told it. */
function* tellEnd(place: StreamPlace, current: MessageWithRequest, events: PlacedEvent[]): Generator<StreamItem> {
  if (place.knows(current)) return;
  const task = taskOf(current.row, current.request);
  if (!place.beganAtRest) yield* tellEvents(place, current, events);
  for (const artifact of current.row.artifacts) {
    if (place.shown.has(artifact)) continue;
    place.shown.show(artifact, false);
    yield { event: artifactUpdate(task, { artifact, append: false, last_chunk: true }), cursor: place.cursor };
  }
  place.say(current);
  yield { event: statusUpdate(task), cursor: place.cursor };
}

/** Reads the row. Of a message that rests, what was told before the row was read is told before its end. */
async function readAfter(core: WatchCore, ref: MessageRef, feed: Feed, told: PlacedEvent[]) {
  const current = await readWatched(core, ref);
  if (isResting(current.row.state)) told.push(...feed.drain().events);
  return current;
}

/** What was kept for one who goes on; null when something of it is lost, or cannot be had: then the task is to be given first. */
async function missed(feed: Feed, place: StreamPlace, signal: AbortSignal): Promise<{ told: Told; whole: boolean }> {
  const whole = await feed.caughtUp(CATCH_UP_MS, signal);
  const told = feed.drain();
  const gap = told.events.find(({ event }) => event.kind === 'gap');
  if (gap) place.position = gap.cursor;
  return { told, whole: whole && !gap };
}

/**
 * The events of a message's stream: first the task, then artifact and status updates, last a status update with `final: true` at a
 * terminal state or at `input-required` (a2a.md). After a cursor: what came after it, no more and no less. Where that is no longer
 * kept: the task as it is, which replaces what the reader has, and what follows. Ends early when the signal aborts.
 */
export async function* streamTask(
  core: WatchCore,
  ref: MessageRef,
  { signal, after }: StreamOptions,
  live: LiveMessage | null = null,
): AsyncGenerator<StreamItem> {
  let place = after === undefined ? null : StreamPlace.read(ref, after);
  using feed = new Feed(core, ref, place?.position ?? 0);
  const kept = place && (await missed(feed, place, signal));
  const events = kept?.told.events ?? [];
  let current = live ? { row: live.row, request: null } : await readAfter(core, ref, feed, events);
  if (!place || !kept?.whole) {
    place = StreamPlace.atTask(ref, place?.position ?? 0, current, isResting(current.row.state));
    yield { cursor: place.cursor, event: taskOf(current.row, current.request) };
  }
  yield* tell(place, current, events);
  while (!isResting(current.row.state) && !signal.aborted) {
    const told = await feed.take(FALLBACK_MS, signal);
    if (told.changed || told.events.length === 0) current = await readAfter(core, ref, feed, told.events);
    yield* tell(place, current, told.events);
  }
}
