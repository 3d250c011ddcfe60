import type { ArtifactUpdate, StatusUpdate, StreamEvent, Task } from '../contracts/a2a.js';
import { isTerminal } from '../contracts/messages.js';
import { PlatformError } from '../runtime/errors.js';
import type { BusEvent, PlacedEvent } from './bus.js';
import type { MessageCore, MessageRef } from './core.js';
import { findMessage } from './read.js';
import type { LiveMessage } from './short-way.js';
import { agentMessage, taskOf } from './task.js';

/** How often a watcher looks at the row although nobody told it of a change: a notice lost with a node costs at most this. */
const FALLBACK_MS = 5_000;
/** How long a message on the short way is waited for without more ado; about when its workflow takes it. */
const LIVE_MS = 2_000;
/** How far a slow reader may fall behind, in events and in bytes; it then misses chunks and gets those artifacts whole at the end. */
const QUEUE_MAX = 1_024;
const QUEUE_BYTES_MAX = 1024 * 1024;

type WatchCore = Pick<MessageCore, 'db' | 'bus'>;

/** Whether a caller has nothing more to wait for: terminal, or a human's turn. */
function isResting(state: string): boolean {
  return isTerminal(state) || state === 'input-required';
}

async function read(core: WatchCore, ref: MessageRef) {
  const found = await findMessage(core.db, ref.tenant_id, ref.message_id);
  if (!found) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
  return found;
}

/** Bus events of one message as a queue that can be awaited with a bound on the wait. */
class Feed implements Disposable {
  /** The reader fell so far behind that chunks were dropped. */
  lossy = false;
  readonly #queue: PlacedEvent[] = [];
  readonly #stop: () => void;
  #bytes = 0;
  #ring: (() => void) | null = null;

  constructor(core: WatchCore, ref: MessageRef, wantChunks: boolean) {
    this.#stop = core.bus.subscribe(ref.tenant_id, ref.message_id, 0, (placed) => {
      const { event } = placed;
      if (!wantChunks && (event.kind !== 'changed' || event.under_way)) return;
      const bytes = event.kind === 'changed' ? 0 : Buffer.byteLength(JSON.stringify(event));
      const full = this.#queue.length >= QUEUE_MAX || this.#bytes + bytes > QUEUE_BYTES_MAX;
      if (event.kind !== 'changed' && full) {
        this.lossy = true;
        return;
      }
      this.#bytes += bytes;
      if (event.kind !== 'changed' || this.#queue.at(-1)?.event.kind !== 'changed') this.#queue.push(placed);
      this.#ring?.();
    });
  }

  /** All that came since the last call; waits for something, for `waitMs`, or for the signal. */
  async take(waitMs: number, signal: AbortSignal): Promise<PlacedEvent[]> {
    if (this.#queue.length === 0 && !signal.aborted && waitMs > 0) {
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          this.#ring = null;
          resolve();
        };
        const timer = setTimeout(done, waitMs);
        this.#ring = done;
        signal.addEventListener('abort', done, { once: true });
      });
    }
    this.#bytes = 0;
    return this.#queue.splice(0);
  }

  [Symbol.dispose](): void {
    this.#stop();
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

/** A message that was put on the record by the caller's own request. `live`: it goes the short way here. */
export interface JustAccepted {
  live: LiveMessage | null;
}

/**
 * The task of a message that goes the short way here, once T2 has ended it; null when it has to be looked up. Most are over in no time,
 * so what a longer wait takes (a signal for the caller's leaving, a place on the bus) is set up after `LIVE_MS` only.
 */
async function liveTask(live: LiveMessage, options: TaskWait): Promise<Task | null> {
  if (!options.blocking) return taskOf(live.row, null, options);
  const end = await settledWithin(live.ended, Math.min(options.waitMs, LIVE_MS));
  return end && isTerminal(end.state) ? taskOf({ ...live.row, ...end }, null, options) : null;
}

/** What `work` gives, or null when it takes longer than `waitMs`. `work` never rejects. */
function settledWithin<T>(work: Promise<T>, waitMs: number): Promise<T | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), waitMs);
    void work.then((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
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
  const feed = new Feed(core, ref, false);
  try {
    // What was put on the record just now has not ended unless that has been told.
    if (accepted && !live && options.blocking) await feed.take(Math.min(options.waitMs, FALLBACK_MS), signal);
    for (;;) {
      const { row, request } = await read(core, ref);
      const leftMs = until - Date.now();
      if (isResting(row.state) || leftMs <= 0 || signal.aborted) return taskOf(row, request, shape);
      await feed.take(Math.min(leftMs, FALLBACK_MS), signal);
    }
  } finally {
    feed[Symbol.dispose]();
  }
}

function artifactUpdate(task: Task, event: Extract<BusEvent, { kind: 'artifact' }>): ArtifactUpdate {
  return {
    kind: 'artifact-update',
    taskId: task.id,
    contextId: task.contextId,
    artifact: event.artifact,
    append: event.append,
    lastChunk: event.last_chunk,
  };
}

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

/** Artifacts of the final task that its chunks have not shown whole; each is sent whole, replacing what was shown. */
function unseenArtifacts(task: Task, seen: ReadonlySet<string>): ArtifactUpdate[] {
  return (task.artifacts ?? [])
    .filter((artifact) => !seen.has(artifact.artifactId))
    .map((artifact) => artifactUpdate(task, { kind: 'artifact', artifact, append: false, last_chunk: true }));
}

/**
 * The events of `message/stream`: first the task, then artifact and status updates, last a status update with `final: true` at a
 * terminal state or at `input-required` (a2a.md). Ends early when the signal aborts.
 */
export async function* streamTask(
  core: WatchCore,
  ref: MessageRef,
  signal: AbortSignal,
  live: LiveMessage | null = null,
): AsyncGenerator<StreamEvent> {
  const feed = new Feed(core, ref, true);
  try {
    const first = live ? { row: live.row, request: null } : await read(core, ref);
    const whole = new Set<string>();
    let shown = first.row.state;
    const opening = taskOf(first.row, first.request);
    yield opening;
    if (isResting(shown)) return yield statusUpdate(opening);
    let current = first;
    const earlier = new Set(first.row.artifacts.map((artifact) => artifact.artifactId));
    while (!signal.aborted) {
      const events = await feed.take(FALLBACK_MS, signal);
      if (events.length === 0 || events.some(({ event }) => event.kind === 'changed')) current = await read(core, ref);
      const { row, request } = current;
      const task = taskOf(row, request);
      for (const { cursor, event } of events) {
        if (event.kind === 'artifact' && !earlier.has(event.artifact.artifactId)) {
          // One whose beginning was missed (dropped by the bus) is sent whole at the end.
          if (!event.append) whole.add(event.artifact.artifactId);
          yield artifactUpdate(task, event);
        } else if (event.kind === 'status_text') {
          const message = agentMessage(row, `status-${cursor}`, [{ kind: 'text', text: event.text }]);
          yield { ...statusUpdate(task), status: { state: 'working', message }, final: false };
        }
      }
      if (isResting(row.state)) {
        yield* unseenArtifacts(task, new Set([...(feed.lossy ? [] : whole), ...earlier]));
        return yield statusUpdate(task);
      }
      if (row.state !== shown) yield statusUpdate(task);
      shown = row.state;
    }
  } finally {
    feed[Symbol.dispose]();
  }
}
