import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { type Artifact, type Part, textOf } from '../../contracts/parts.js';
import type { AgentTask, TaskResolution, TaskResult } from './agent-task.js';
import { type FrameSink, Outbox } from './outbox.js';
import { type Outcome, outcomeOf, outcomeOfError } from './outcome.js';

const STATUS_TEXT_MAX = 4_096;

/** One dispatch: its handler, its chunks, and its outcome, which is held until the mesh has it. */
export class DispatchRun {
  readonly frameId: string;
  readonly dispatch: DispatchPayload;
  readonly #outbox: Outbox;
  readonly #controller = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  /** Named by the dispatch, as the mesh names what has no name. */
  readonly #output: Artifact;
  #streamedBytes = 0;
  #sink: FrameSink | null = null;
  #outcome: Outcome | null = null;
  #outcomeSentAtMs: number | null = null;

  constructor(frameId: string, dispatch: DispatchPayload, sink: FrameSink) {
    this.frameId = frameId;
    this.dispatch = dispatch;
    this.#outbox = new Outbox(frameId);
    this.#output = { artifactId: frameId, parts: [] };
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
  async handle(onMessage: (task: AgentTask) => Promise<TaskResult>): Promise<void> {
    try {
      this.#outcome = outcomeOf(await onMessage(this.#task()), this.#output, this.dispatch);
    } catch (error) {
      this.#outcome = outcomeOfError(error);
    }
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

  #task(): AgentTask {
    const { params, session_context: context, dispatch_id, skill_id, attempt, deadline_ms } = this.dispatch;
    return {
      text: textOf(params.message.parts),
      parts: params.message.parts,
      sessionId: context.session_id,
      messageId: context.message_id,
      dispatchId: dispatch_id,
      skillId: skill_id,
      attempt,
      resolution: readResolution(params.metadata?.resolution),
      deadlineMs: deadline_ms,
      traceparent: context.propagation_headers?.traceparent ?? '',
      signal: this.#controller.signal,
      stream: (output) => this.#stream(typeof output === 'string' ? [{ kind: 'text', text: output }] : output),
      status: (text) => this.#add({ status_text: text.slice(0, STATUS_TEXT_MAX) }),
      ask: (question) => ({ state: 'input-required', question }),
    };
  }

  async #stream(parts: Part[]): Promise<void> {
    this.#streamedBytes += Buffer.byteLength(JSON.stringify(parts));
    if (this.#streamedBytes > LIMITS.frameBytes) throw new Error(`an answer has at most ${LIMITS.frameBytes} bytes`);
    const append = this.#output.parts.length > 0;
    for (const part of parts) appendPart(this.#output.parts, part);
    await this.#add({ artifact: { artifactId: this.frameId, parts }, append });
  }

  async #add(content: Parameters<Outbox['add']>[0]): Promise<void> {
    if (this.isAborted || this.#outcome) return;
    await this.#outbox.add(content);
  }
}

/** Streamed pieces of plain text become one part. */
function appendPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  const joins = last?.kind === 'text' && part.kind === 'text' && !last.metadata && !part.metadata;
  if (joins) parts[parts.length - 1] = { kind: 'text', text: last.text + part.text };
  else parts.push(part);
}

function readResolution(value: unknown): TaskResolution | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { request_id, resolution, data, comment } = value as {
    request_id: string;
    resolution: TaskResolution['resolution'];
    data?: Record<string, unknown>;
    comment?: string;
  };
  return { requestId: request_id, resolution, ...(data && { data }), ...(comment && { comment }) };
}
