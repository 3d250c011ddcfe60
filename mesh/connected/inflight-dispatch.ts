import { FRAME_ERROR_CODES, type FrameErrorCode } from '../../contracts/errors.js';
import type {
  DispatchChunkPayload,
  DispatchPayload,
  DispatchResultPayload,
  ErrorPayload,
} from '../../contracts/frames.js';
import type { DispatchRef } from '../../messages/dispatch/dispatch-ref.js';
import type { OpenDispatch, Produced } from '../../messages/dispatch/dispatches.js';
import type { LocalEnd } from '../../messages/dispatch/local-mesh.js';
import { errorMessage } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import { TokenBucket } from '../../runtime/token-bucket.js';
import { encodeFrame, errorFrame, unfitAnswer } from '../connection/frames.js';
import { closedWith, type DispatchEnd } from '../dispatcher.js';
import { toAgentResult } from './agent-result.js';
import { CHUNK_PACE, ChunkLog, type ChunkVerdict, whyRefused } from './chunks.js';
import {
  type DispatchConnection,
  type Ending,
  type EndingDispatch,
  type InflightDeps,
  persistIn,
  tellClosed,
  type WrittenEnding,
  writeEnding,
} from './dispatch-end.js';

/**
 * One dispatch to a connected agent, from before it is marked as sent until its end is in the database. It outlives sockets:
 * a resume goes on with it under a new epoch.
 */
export class InflightDispatch implements EndingDispatch {
  readonly ref: DispatchRef;
  /** The id of its frame, which every frame about it carries in `in_reply_to`. */
  readonly frameId: string;
  readonly agentKey: string;
  readonly instanceId: string;
  /** Resolves with its end, never rejects. */
  readonly done: Promise<DispatchEnd>;
  /** Resolves once it is known whether it was marked as sent. */
  readonly marked: Promise<void>;
  /** The epoch of the connection that it belongs to; a resume raises it. */
  epoch: number;
  reachedSocket = false;
  #written: WrittenEnding = { end: null, written: true, needsWorkflow: true };
  #state: 'marking' | 'sent' | 'ending' | 'done' = 'marking';
  #waitingEnding: Ending | undefined;
  #sent: OpenDispatch | undefined;
  #deadlineAtMs = 0;
  #sends = 0;
  /** Chunks that the agent has sent, as it said when it came back. */
  #promised = 0;
  #pace: TokenBucket | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #resolve: (end: DispatchEnd) => void = () => undefined;
  readonly #chunks: ChunkLog;
  readonly #around: InflightDeps;

  /** @param sent given when it is on the record as sent already: then `sendFirst` is to be called, once */
  constructor(ref: DispatchRef, connection: DispatchConnection, around: InflightDeps, sent?: OpenDispatch) {
    this.ref = { tenant_id: ref.tenant_id, message_id: ref.message_id, dispatch_id: ref.dispatch_id };
    this.frameId = uuidOf(ref.dispatch_id);
    this.agentKey = connection.agentKey;
    this.instanceId = connection.instance_id;
    this.epoch = connection.epoch;
    this.#around = around;
    this.#chunks = new ChunkLog(this.frameId);
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#sent = sent;
    this.marked = sent ? Promise.resolve() : this.#mark();
  }

  /** Sends it for the first time; it is on the record as sent. */
  sendFirst(): void {
    if (this.#sent && this.#state === 'marking') this.#markedSent(this.#sent);
  }

  /** What earlier dispatches of the message brought. */
  get produced(): Produced {
    return this.#sent?.produced ?? { artifacts: [], usage: null };
  }

  /** W3C header of the caller's trace; undefined before it was sent. */
  get traceparent(): string | undefined {
    return this.#sent?.payload.session_context.propagation_headers.traceparent;
  }

  /** What the agent was given, and when its time is over on `performance.now()`; undefined before it was sent. */
  get given(): { payload: DispatchPayload; endsAtMs: number } | undefined {
    return this.#sent && { payload: this.#sent.payload, endsAtMs: this.#deadlineAtMs };
  }

  /** Whether the agent may have it and its end is not yet being written. */
  get isOpen(): boolean {
    return this.#state === 'sent';
  }

  /** False once its end could not be written although it was sent. */
  get written(): boolean {
    return this.#written.written;
  }

  /** How it ended, once `done`. */
  localEnd(): LocalEnd {
    return { end: this.#written.end, needsWorkflow: this.#written.needsWorkflow };
  }

  /** Sends it once more, with the same id, a higher attempt and the time that is left. */
  resend(): void {
    if (this.#state === 'sent') this.#sendFrame();
  }

  /** The agent that came back has sent chunks up to this number: those that did not come must come again before a result counts. */
  heldUpTo(lastSeq: number): void {
    this.#promised = lastSeq + 1;
  }

  /** Takes a chunk: published at once, kept for the final artifacts. */
  chunk(payload: DispatchChunkPayload): void {
    this.#pace ??= new TokenBucket(CHUNK_PACE);
    const verdict: ChunkVerdict = this.#pace.take() ? this.#chunks.push(payload) : { kind: 'flood' };
    const why = whyRefused(verdict, payload.seq, this.#chunks.count);
    if (why) this.#refuse(...why);
    if (verdict.kind !== 'taken') return;
    for (const event of verdict.events) this.#around.bus.publish(this.ref.tenant_id, this.ref.message_id, event);
  }

  /** The agent's answer, or a piece of it, is none. */
  unfit(problem: string): void {
    this.#refuse('HANDLER_ERROR', unfitAnswer(problem));
  }

  /** Takes the agent's result. */
  result(payload: DispatchResultPayload): void {
    const sent = Math.max(payload.chunk_count ?? 0, this.#promised);
    if (sent > this.#chunks.count) {
      this.#refuse('CHUNK_SEQ_GAP', `${sent} chunks were sent, ${this.#chunks.count} came.`);
      return;
    }
    this.#end({ kind: 'outcome', outcome: toAgentResult(payload, this.#chunks.artifacts(), this.ref.dispatch_id) });
  }

  /** The agent says that it failed. A code that is not one of the platform's reads HANDLER_ERROR. */
  agentFailed(payload: ErrorPayload): void {
    const code = (FRAME_ERROR_CODES as readonly string[]).includes(payload.code) ? payload.code : 'HANDLER_ERROR';
    const message =
      code === payload.code ? payload.message : [payload.code, payload.message].filter(Boolean).join(': ');
    this.#end({ kind: 'failure', error: { code, message: message || code }, sign: 'answered' });
  }

  /** The agent is gone: fails it, or takes it back where nothing was sent. Resolves when that is in the database. */
  async failAsLost(): Promise<void> {
    this.#end({ kind: 'lost' });
    await this.done;
  }

  /** It was closed in the database by something else: tells the agent and forgets it. */
  closedElsewhere(state: string, reason = ''): void {
    if (this.#state === 'sent') tellClosed(this.#around, this, state, reason);
    this.#end({ kind: 'elsewhere' });
  }

  async #mark(): Promise<void> {
    const { dispatches, meshId, log } = this.#around;
    const owner = { mesh_id: meshId, epoch: this.epoch };
    try {
      const sent = await persistIn(this.#around, () => dispatches.markSent(this.ref, owner));
      if (sent) this.#markedSent(sent);
      else this.#finish(await this.#whyNotSent());
    } catch (error) {
      log.error(
        { err: errorMessage(error), dispatch_id: this.ref.dispatch_id },
        'dispatch could not be marked as sent',
      );
      this.#finish({ kind: 'not_sent', reason: 'INTERNAL' });
    }
  }

  #markedSent(sent: OpenDispatch): void {
    this.#sent = sent;
    this.#state = 'sent';
    const { deadline_ms } = sent.payload;
    this.#deadlineAtMs = performance.now() + deadline_ms;
    if (this.#waitingEnding) {
      this.#end(this.#waitingEnding);
      return;
    }
    this.#deadline = setTimeout(() => this.#expire(), deadline_ms);
    this.#sendFrame();
  }

  #expire(): void {
    this.#refuse('DEADLINE_EXCEEDED', 'The agent did not answer in time.', 'failed');
  }

  /** It was not marked: closed meanwhile, or a newer connection has to get it, or marked by a commit whose answer was lost. */
  async #whyNotSent(): Promise<DispatchEnd> {
    const { dispatches } = this.#around;
    const open = await persistIn(this.#around, () => dispatches.find(this.ref));
    if (!open) return { kind: 'closed' };
    if (open.sent_at === null) return { kind: 'not_sent', reason: 'CONNECTION_REPLACED' };
    if (open.epoch !== this.epoch || open.mesh_id !== this.#around.meshId) {
      await persistIn(this.#around, () => dispatches.failAsLost(this.ref, 'AGENT_DISCONNECTED'));
      return { kind: 'closed' };
    }
    await persistIn(this.#around, () => dispatches.release(this.ref, 'NEVER_SENT', { nothingSent: true }));
    return { kind: 'not_sent', reason: 'NEVER_SENT' };
  }

  #sendFrame(): void {
    const payload = this.#sent?.payload;
    if (!payload) return;
    const deadline_ms = Math.max(1, Math.round(this.#deadlineAtMs - performance.now()));
    const body = { ...payload, deadline_ms, attempt: payload.attempt + this.#sends };
    this.#sends += 1;
    const frame = encodeFrame('dispatch', body, { id: this.frameId, traceparent: this.traceparent });
    this.reachedSocket = this.#around.send(this.agentKey, frame) || this.reachedSocket;
  }

  /** Fails it and tells the agent why. */
  #refuse(code: FrameErrorCode, message: string, sign?: 'failed'): void {
    this.#around.send(this.agentKey, errorFrame(code, message, this.frameId, this.traceparent));
    this.#end({ kind: 'failure', error: { code, message }, ...(sign && { sign }) });
  }

  /** The first ending wins. One that comes while it is being marked waits for that. */
  #end(ending: Ending): void {
    if (this.#state === 'marking') this.#waitingEnding ??= ending;
    if (this.#state !== 'sent') return;
    this.#state = 'ending';
    clearTimeout(this.#deadline);
    void writeEnding(this.#around, this, ending).then((written) => {
      this.#written = written;
      this.#finish(closedWith(written.end));
    });
  }

  #finish(end: DispatchEnd): void {
    clearTimeout(this.#deadline);
    this.#state = 'done';
    this.#resolve(end);
  }
}
