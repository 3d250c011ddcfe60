import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { type FrameSink, Outbox } from './chunk-buffer.js';
import type { Outcome } from '../handlers/agent-result.js';
import { type RunDeps, runDispatch } from '../handlers/run-handler.js';
import { type ChunkContent, TaskOutput } from '../handlers/task-output.js';

/** One dispatch: its handler, its chunks, and its outcome, which is held until the mesh has it. */
export class DispatchRun {
  readonly frameId: string;
  readonly dispatch: DispatchPayload;
  readonly #outbox: Outbox;
  readonly #controller = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  /** Its artifact is named by the dispatch, as the mesh names what has no name. */
  readonly #output: TaskOutput;
  #sink: FrameSink | null = null;
  #outcome: Outcome | null = null;
  #outcomeSentAtMs: number | null = null;

  constructor(frameId: string, dispatch: DispatchPayload, sink: FrameSink) {
    this.frameId = frameId;
    this.dispatch = dispatch;
    this.#outbox = new Outbox(frameId);
    this.#output = new TaskOutput(frameId, (content) => this.#add(content));
    this.#deadline = setTimeout(
      () => this.abort('DEADLINE_EXCEEDED'),
      Math.min(dispatch.deadline_ms, LIMITS.deadlineMsMax),
    );
    this.attach(sink);
  }

  /** Canceled, out of time, or lost: nothing more is sent. */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** When the outcome was handed to the present connection, in milliseconds since the epoch; null while it was not. */
  get outcomeSentAtMs(): number | null {
    return this.#outcomeSentAtMs;
  }

  get resumesAfterSeq(): number {
    return this.#outbox.resumesAfterSeq;
  }

  /** Runs the handler to its end; never rejects. */
  async handle(deps: RunDeps): Promise<void> {
    const work = { dispatch: this.dispatch, output: this.#output, signal: this.#controller.signal };
    this.#outcome = await runDispatch(work, deps);
    clearTimeout(this.#deadline);
    this.flush();
  }

  /** Takes a connection, or null when it is lost; a new one gets all that is held. */
  attach(sink: FrameSink | null): void {
    this.#sink = sink;
    this.#outcomeSentAtMs = null;
    this.#outbox.attach(sink);
    this.flush();
  }

  /** Sends what there is room for; the outcome follows the last chunk. */
  flush(): void {
    if (this.isAborted || !this.#sink) return;
    this.#outbox.flush();
    if (!this.#outcome || this.#outcomeSentAtMs !== null || !this.#outbox.isFlushed) return;
    const { type, payload } = this.#outcome;
    const counted = type === 'dispatch_result' ? { ...payload, chunk_count: this.#outbox.count } : payload;
    this.#outcomeSentAtMs = Date.now();
    this.#sink.send(type, counted, this.frameId);
  }

  /** Ends it without an outcome; the handler's signal aborts with an error whose message is `code`. */
  abort(code: string): void {
    clearTimeout(this.#deadline);
    this.#sink = null;
    this.#controller.abort(new Error(code));
    this.#outbox.attach(null);
    this.#outbox.release();
  }

  async #add(content: ChunkContent): Promise<void> {
    if (this.isAborted || this.#outcome) return;
    await this.#outbox.add(content);
  }
}
