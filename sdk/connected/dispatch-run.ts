import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { ResultFrame } from '../handlers/result-frame.js';
import { type RunDeps, runDispatch } from '../handlers/run-dispatch.js';
import { TaskDeadline } from '../handlers/task-deadline.js';
import { type ChunkContent, TaskOutput } from '../handlers/task-output.js';
import { ChunkBuffer, type FrameSink } from './chunk-buffer.js';

/** One dispatch: its handler, its chunks, and its result, which is kept until the mesh has received it. */
export class DispatchRun {
  readonly frameId: string;
  readonly dispatch: DispatchPayload;
  readonly #chunks: ChunkBuffer;
  readonly #controller = new AbortController();
  readonly #deadline: TaskDeadline;
  readonly #output: TaskOutput;
  #sink: FrameSink | null = null;
  #result: ResultFrame | null = null;
  #resultSentAtMs: number | null = null;

  constructor(frameId: string, dispatch: DispatchPayload, sink: FrameSink) {
    this.frameId = frameId;
    this.dispatch = dispatch;
    this.#chunks = new ChunkBuffer(frameId);
    // The mesh names unnamed output by the frame id as well.
    this.#output = new TaskOutput(frameId, (content) => this.#addChunk(content), this.#controller.signal);
    const deadlineMs = Math.min(dispatch.deadline_ms, LIMITS.deadlineMsMax);
    this.#deadline = new TaskDeadline(deadlineMs, () => this.abort('DEADLINE_EXCEEDED'));
    this.attach(sink);
  }

  /** Whether the dispatch was canceled, lost or exceeded its deadline; nothing more is sent. */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** When the result was sent on the current connection, in milliseconds since the epoch; null before. */
  get resultSentAtMs(): number | null {
    return this.#resultSentAtMs;
  }

  get resumeAfterSeq(): number {
    return this.#chunks.resumeAfterSeq;
  }

  /** Runs the handler; never rejects. */
  async run(deps: RunDeps): Promise<void> {
    const { signal } = this.#controller;
    const input = { dispatch: this.dispatch, output: this.#output, signal, deadline: this.#deadline };
    this.#result = await runDispatch(input, deps);
    this.#deadline.stop();
    this.flush();
  }

  /** Sets the connection, or null when it is lost. A new connection gets all buffered chunks and the result again. */
  attach(sink: FrameSink | null): void {
    this.#sink = sink;
    this.#resultSentAtMs = null;
    this.#chunks.attach(sink);
    this.flush();
  }

  /** Sends chunks until the connection's buffer is full; the result follows the last chunk. */
  flush(): void {
    if (this.isAborted || !this.#sink) return;
    this.#chunks.flush();
    if (!this.#result || this.#resultSentAtMs !== null || !this.#chunks.isFlushed) return;
    const { type, payload } = this.#result;
    const counted = type === 'dispatch_result' ? { ...payload, chunk_count: this.#chunks.count } : payload;
    this.#resultSentAtMs = Date.now();
    this.#sink.send(type, counted, this.frameId);
  }

  /** Ends the dispatch without a result; the handler's signal aborts with an error whose message is `code`. */
  abort(code: string): void {
    this.#deadline.stop();
    this.#sink = null;
    this.#controller.abort(new Error(code));
    this.#chunks.attach(null);
    this.#chunks.release();
  }

  async #addChunk(content: ChunkContent): Promise<void> {
    if (this.isAborted || this.#result) return;
    await this.#chunks.add(content);
  }
}
