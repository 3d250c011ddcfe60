import { LRUCache } from 'lru-cache';
import type { FrameErrorCode } from '../../contracts/errors.js';
import type { DispatchChunkPayload, DispatchResultPayload, ErrorPayload } from '../../contracts/frames.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type {
  ClosedState,
  Destination,
  DispatchStop,
  Transport,
  TransportResult,
} from '../../messages/runner/transport.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { agentKeyOf, uuidOf } from '../../runtime/ids.js';
import { TokenBucket } from '../../runtime/token-bucket.js';
import type { SpanRecorder } from '../../telemetry/traces/span-recorder.js';
import type { Registry } from '../connection/connection.js';
import { type DeadlineDeps, DispatchDeadline } from '../dispatch-deadline.js';
import { encodeFrame, errorFrame, unfitAnswer } from '../frames/frames.js';
import { reportedFailure, toAgentResult } from './agent-result.js';
import { CHUNK_PACE, ChunkLog, type ChunkVerdict, whyRefused } from './chunks.js';
import { DispatchProgress } from './dispatch-progress.js';
import { recordStream } from './stream-span.js';

/** What a dispatch to a connected agent works with. */
interface SentDispatchDeps extends DeadlineDeps {
  spans: SpanRecorder;
  bus: Pick<ChunkBus, 'publish'>;
  /** Sends to the agent's present socket; false when there is none. */
  send(agentKey: string, frame: string): boolean;
}

/** The frames of one dispatch until its result. It outlives sockets: a resume continues it. */
export class SentDispatch {
  readonly open: OpenDispatch;
  /** The id of its frame, which every frame about it carries in `in_reply_to`. */
  readonly frameId: string;
  readonly agentKey: string;
  /** Never rejects. */
  readonly result: Promise<TransportResult>;
  readonly deadline: DispatchDeadline;
  /** Takes no more frames, because another node may continue the dispatch; the agent sends them again there. */
  isFrozen = false;
  #isOpen = true;
  #reachedSocket = false;
  #sends = 0;
  /** How many chunks the agent said that it had sent, when it resumed. */
  #announcedChunks = 0;
  #pace: TokenBucket | undefined;
  #resolve: (result: TransportResult) => void = () => undefined;
  /** Undefined until the first chunk. */
  #chunks: ChunkLog | undefined;
  readonly #deps: SentDispatchDeps;

  /** @param stop ends the wait for the agent */
  constructor(open: OpenDispatch, agentKey: string, stop: DispatchStop, deps: SentDispatchDeps) {
    this.open = open;
    this.frameId = uuidOf(open.dispatch_id);
    this.agentKey = agentKey;
    this.#deps = deps;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const endsAtMs = performance.now() + open.payload.deadline_ms;
    this.deadline = new DispatchDeadline(open, endsAtMs, deps, () => this.#expire());
    stop.onStop(() => this.#lose());
  }

  /**
   * Continues where another node stopped. @param progress JSON from that node. @throws z.ZodError when it does not fit
   */
  continueFrom(progress: string): this {
    const { sends, announced_chunks, chunks } = DispatchProgress.parse(JSON.parse(progress));
    this.#reachedSocket = true;
    this.#sends = sends;
    this.#announcedChunks = announced_chunks;
    if (chunks) this.#chunks = ChunkLog.continued(this.frameId, chunks);
    return this;
  }

  /** Whether its result is still to come. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** W3C header of the caller's trace. */
  get traceparent(): string {
    return this.open.payload.session_context.propagation_headers.traceparent;
  }

  /** Sends the dispatch. A further call sends it again with the same id, a higher attempt and the time that is left. */
  send(): void {
    const { payload } = this.open;
    const deadline_ms = Math.round(this.deadline.leftMs);
    const body = { ...payload, deadline_ms, attempt: payload.attempt + this.#sends };
    this.#sends += 1;
    const frame = encodeFrame('dispatch', body, { id: this.frameId, traceparent: this.traceparent });
    this.#reachedSocket = this.#deps.send(this.agentKey, frame) || this.#reachedSocket;
  }

  /** Notes that a resumed agent has sent chunks up to this number. Its result counts only once all of them came. */
  noteAnnouncedChunks(lastSeq: number): void {
    this.#announcedChunks = lastSeq + 1;
  }

  /** Takes no more frames and stops the deadline, which runs on at the other node. */
  freeze(): void {
    this.isFrozen = true;
    this.deadline.stop();
  }

  /** What another node needs to continue it once it is frozen, as JSON. */
  progress(): string {
    const numbers = { sends: this.#sends, announced_chunks: this.#announcedChunks };
    return JSON.stringify({ ...numbers, chunks: this.#chunks?.progress() ?? null } satisfies DispatchProgress);
  }

  /** Ends the dispatch here, once its progress is on the record. */
  transferred(): void {
    this.#end({ state: 'transferred' });
  }

  /** Takes a chunk: publishes it at once and keeps it for the final artifacts. */
  chunk(payload: DispatchChunkPayload): void {
    this.#pace ??= new TokenBucket(CHUNK_PACE);
    this.#chunks ??= new ChunkLog(this.frameId);
    const verdict: ChunkVerdict = this.#pace.take() ? this.#chunks.push(payload) : { kind: 'flood' };
    const why = whyRefused(verdict, payload.seq, this.#chunks.count);
    if (why) this.#refuse(...why);
    if (verdict.kind !== 'taken') return;
    const { tenant_id, message_id } = this.open;
    for (const event of verdict.events) this.#deps.bus.publish(tenant_id, message_id, event);
  }

  /** Fails the dispatch: the content of a chunk or of the result does not fit its schema. */
  unfit(problem: string): void {
    this.#refuse('HANDLER_ERROR', unfitAnswer(problem));
  }

  /** Takes the agent's answer. */
  answer(payload: DispatchResultPayload): void {
    const sent = Math.max(payload.chunk_count ?? 0, this.#announcedChunks);
    const came = this.#chunks?.count ?? 0;
    if (sent > came) {
      this.#refuse('CHUNK_SEQ_GAP', `${sent} chunks were sent, ${came} came.`);
      return;
    }
    const result = toAgentResult(payload, this.#chunks?.artifacts() ?? [], this.open.dispatch_id);
    this.#end({ ...result, health: 'well' });
  }

  /** The agent reports that it failed. */
  agentFailed(payload: ErrorPayload): void {
    this.#end(reportedFailure(payload));
  }

  #expire(): void {
    this.#refuse('DEADLINE_EXCEEDED', 'The agent did not answer in time.', 'failing');
  }

  #lose(): void {
    this.#end(this.#reachedSocket ? { state: 'lost' } : { state: 'not_sent', reason: 'AGENT_DISCONNECTED' });
  }

  /** Fails the dispatch and tells the agent why. */
  #refuse(code: FrameErrorCode, message: string, health?: 'failing'): void {
    this.#deps.send(this.agentKey, errorFrame(code, message, this.frameId, this.traceparent));
    this.#end({ state: 'failed', error: { code, message }, ...(health && { health }) });
  }

  /** The first result counts. */
  #end(result: TransportResult): void {
    // The node that ends a transferred dispatch records its stream.
    if (this.#isOpen && result.state !== 'transferred' && this.#chunks)
      recordStream(this.#deps.spans, this.open, this.#chunks);
    this.#isOpen = false;
    this.deadline.stop();
    this.#resolve(result);
  }
}

/** Ended dispatches that are remembered, so that a late frame costs no query. */
const ENDED_MAX = 5_000;

/** The dispatches that connected agents of this node have, and the last ones that ended. */
export class SentDispatches {
  readonly #byFrame = new Map<string, SentDispatch>();
  readonly #byAgent = new Map<string, Set<SentDispatch>>();
  /** Frame id → agent. */
  readonly #ended = new LRUCache<string, string>({ max: ENDED_MAX });

  /** Takes a dispatch in until its result has come. */
  add(dispatch: SentDispatch): void {
    const { frameId, agentKey } = dispatch;
    this.#byFrame.set(frameId, dispatch);
    this.#byAgent.set(agentKey, (this.#byAgent.get(agentKey) ?? new Set()).add(dispatch));
    void dispatch.result.then(() => this.#remove(dispatch));
  }

  get(frameId: string): SentDispatch | undefined {
    return this.#byFrame.get(frameId);
  }

  /** The dispatches whose result this agent has not sent yet. */
  openOf(agentKey: string): SentDispatch[] {
    return [...(this.#byAgent.get(agentKey) ?? [])].filter(({ isOpen }) => isOpen);
  }

  /** Whether the dispatch of that frame was this agent's and has ended lately. */
  endedLately(frameId: string, agentKey: string): boolean {
    return this.#ended.get(frameId) === agentKey;
  }

  noteEnded(frameId: string, agentKey: string): void {
    this.#ended.set(frameId, agentKey);
  }

  #remove(dispatch: SentDispatch): void {
    const { frameId, agentKey } = dispatch;
    this.#byFrame.delete(frameId);
    this.noteEnded(frameId, agentKey);
    const ofAgent = this.#byAgent.get(agentKey);
    ofAgent?.delete(dispatch);
    if (ofAgent?.size === 0) this.#byAgent.delete(agentKey);
  }
}

/** What the transport works with on its node. */
interface ConnectedTransportDeps extends DeadlineDeps {
  spans: SpanRecorder;
  bus: Pick<ChunkBus, 'publish'>;
  registry: Pick<Registry, 'get' | 'isConnecting' | 'epochSettled'>;
  sent: Pick<SentDispatches, 'add'>;
  /** Offers what still runs to other nodes. */
  transfer(): Promise<void>;
}

/** Carries dispatches to the agents whose sockets are on this node. */
export class ConnectedTransport implements Transport {
  readonly #deps: ConnectedTransportDeps;
  readonly #sentDeps: SentDispatchDeps;

  constructor(deps: ConnectedTransportDeps) {
    this.#deps = deps;
    const { bus, changes, dispatches, spans } = deps;
    this.#sentDeps = { bus, changes, dispatches, spans, send: (agentKey, frame) => this.#send(agentKey, frame) };
  }

  epochSettled(agent: Destination): Promise<void> {
    return this.#deps.registry.epochSettled(agentKeyOf(agent));
  }

  /** Null also while the connection may be about to be replaced, or has more to write than it gets rid of. */
  epochOf(agent: Destination): number | null {
    const { registry } = this.#deps;
    const agentKey = agentKeyOf(agent);
    const connection = registry.get(agentKey);
    const takes = connection?.state === 'READY' && !registry.isConnecting(agentKey) && !connection.socket.isCongested;
    return takes ? connection.epoch : null;
  }

  send(open: OpenDispatch, stop: DispatchStop): Promise<TransportResult> {
    const dispatch = new SentDispatch(open, agentKeyOf(open), stop, this.#sentDeps);
    this.#deps.sent.add(dispatch);
    dispatch.send();
    return dispatch.result;
  }

  /** Continues a dispatch without sending it: `welcome` in hello.ts sends those again that the agent does not have. */
  async adopt(open: OpenDispatch, progress: string, stop: DispatchStop): Promise<TransportResult> {
    const dispatch = new SentDispatch(open, agentKeyOf(open), stop, this.#sentDeps).continueFrom(progress);
    this.#deps.sent.add(dispatch);
    return dispatch.result;
  }

  transfer(): Promise<void> {
    return this.#deps.transfer();
  }

  notifyClosed(open: OpenDispatch, state: ClosedState, reason: string): void {
    this.#send(agentKeyOf(open), closedFrame(open, state, reason));
  }

  #send(agentKey: string, frame: string): boolean {
    const connection = this.#deps.registry.get(agentKey);
    return connection?.isLive === true && connection.socket.send(frame);
  }
}

function closedFrame({ dispatch_id, payload }: OpenDispatch, state: ClosedState, reason: string): string {
  const { traceparent } = payload.session_context.propagation_headers;
  const frameId = uuidOf(dispatch_id);
  if (state === 'denied') return errorFrame('GUARD_DENIED', reason, frameId, traceparent);
  return state === 'canceled'
    ? errorFrame('CANCELED', reason || 'The message was canceled.', frameId, traceparent)
    : errorFrame('DISPATCH_ALREADY_TERMINAL', `The dispatch has ended: ${state}.`, frameId, traceparent);
}
