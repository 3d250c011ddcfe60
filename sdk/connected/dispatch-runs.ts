import type { DispatchPayload, FrameEnvelope, HelloPayload, WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentLog } from '../log.js';
import { DispatchRun } from './dispatch-run.js';
import { readDispatch } from './frames.js';
import type { MeshConnection } from './mesh-connection.js';
import type { FrameSink } from './chunk-buffer.js';
import type { RunDeps, RunTask } from '../handlers/run-handler.js';
import type { ToolCaller } from '../tools/tool-caller.js';

/** Answers that were sent but perhaps not received are held for the resume window; at most this many. */
const ANSWERED_MAX = 64;

/** All dispatches of an agent, over its connections. */
export class DispatchRuns {
  readonly #deps: RunDeps;
  readonly #running = new Map<string, DispatchRun>();
  /** Handlers that have ended; kept because the connection may break before the mesh has the outcome. */
  readonly #answered = new Map<string, DispatchRun>();
  #sink: FrameSink | null = null;
  #resumeWindowMs = 0;
  #maxInflight: number = LIMITS.dispatchesInFlightPerConnection;
  #idle: (() => void)[] = [];

  /** @param tools the way of the tool calls that handlers make */
  constructor(runTask: RunTask, tools: ToolCaller, log: AgentLog) {
    this.#deps = { runTask, tools, log };
  }

  /** Different sessions that are being worked for. */
  get sessionCount(): number {
    return new Set([...this.#running.values()].map((run) => run.dispatch.session_context.session_id)).size;
  }

  /** What `hello` says is still held here. */
  inflight(): NonNullable<HelloPayload['inflight']> {
    this.#forgetAnswered();
    return this.#all().map((run) => ({ dispatch_id: run.dispatch.dispatch_id, last_seq: run.resumesAfterSeq }));
  }

  /** A connection is ready. Without a resume the mesh has failed everything: it is given up here too. */
  connected(connection: MeshConnection, welcome: WelcomePayload): void {
    this.#resumeWindowMs = welcome.resume_window_ms;
    this.#maxInflight = welcome.limits?.max_inflight ?? this.#maxInflight;
    this.#sink = this.#sinkOf(connection);
    if (!welcome.resumed) this.abortAll('AGENT_DISCONNECTED');
    for (const run of this.#all()) run.attach(this.#sink);
  }

  /** The connection is lost; handlers go on, their output is held. */
  disconnected(): void {
    this.#sink = null;
    for (const run of this.#all()) run.attach(null);
  }

  /** A `dispatch` frame. One that is known already is not run again; one that crossed a `close_request` is run like any other. */
  accept(frame: FrameEnvelope): void {
    const sink = this.#sink;
    if (!sink || this.#running.has(frame.id)) return;
    const answered = this.#answered.get(frame.id);
    if (answered) {
      answered.attach(sink);
      return;
    }
    const dispatch = readDispatch(frame.payload);
    const problem = dispatch ? this.#busy() : { code: 'INVALID_DISPATCH', message: 'not a dispatch of service.v1' };
    if (problem || !dispatch) sink.send('error', { retryable: problem?.code === 'AGENT_BUSY', ...problem }, frame.id);
    else this.#start(frame.id, dispatch, sink);
  }

  /** An `error` frame: the mesh has ended the dispatch that it is about, where it is about one. */
  endedByMesh(frameId: string, code: string): void {
    this.#answered.delete(frameId);
    this.#settle();
    const run = this.#running.get(frameId);
    if (!run) return;
    this.#deps.log.info({ dispatch_id: run.dispatch.dispatch_id, code }, 'dispatch ended by the mesh');
    this.#remove(run);
    run.abort(code);
  }

  abortAll(code: string): void {
    for (const run of [...this.#running.values()]) {
      this.#remove(run);
      run.abort(code);
    }
    this.#answered.clear();
    this.#settle();
  }

  /** No handler is running, and every answer was handed to the present connection. */
  get isIdle(): boolean {
    const isUnsent = (run: DispatchRun) => !run.isAborted && run.outcomeSentAtMs === null;
    return this.#running.size === 0 && ![...this.#answered.values()].some(isUnsent);
  }

  /** Settles when it is idle. */
  async idle(): Promise<void> {
    if (!this.isIdle) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #start(frameId: string, dispatch: DispatchPayload, sink: FrameSink): void {
    const run = new DispatchRun(frameId, dispatch, sink);
    this.#running.set(frameId, run);
    sink.send('dispatch_ack', { accepted_at: new Date().toISOString() }, frameId);
    void run.handle(this.#deps).then(() => {
      if (!this.#running.has(frameId)) return;
      this.#answered.set(frameId, run);
      this.#remove(run);
    });
  }

  #remove(run: DispatchRun): void {
    this.#running.delete(run.frameId);
    this.#forgetAnswered();
    this.#settle();
  }

  #settle(): void {
    if (this.#idle.length > 0 && this.isIdle) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #busy(): { code: string; message: string } | null {
    return this.#running.size < this.#maxInflight
      ? null
      : { code: 'AGENT_BUSY', message: 'too many dispatches at once' };
  }

  #forgetAnswered(): void {
    const oldest = Date.now() - this.#resumeWindowMs;
    for (const [frameId, run] of this.#answered) {
      const sentAtMs = run.outcomeSentAtMs;
      const isOver = run.isAborted || (sentAtMs !== null && (sentAtMs < oldest || this.#answered.size > ANSWERED_MAX));
      if (isOver) this.#answered.delete(frameId);
    }
  }

  #all(): DispatchRun[] {
    return [...this.#running.values(), ...this.#answered.values()];
  }

  #sinkOf(connection: MeshConnection): FrameSink {
    const flushAll = () => {
      for (const run of this.#all()) run.flush();
      this.#settle();
    };
    return {
      get bufferedBytes() {
        return connection.bufferedBytes;
      },
      send: (type, payload, inReplyTo) => connection.send(type, payload, { inReplyTo }, flushAll),
    };
  }
}
