import type { DispatchPayload, FrameEnvelope, HelloPayload, WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { RunDeps, RunTask } from '../handlers/run-dispatch.js';
import type { AgentLog } from '../log.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import type { FrameSink } from './chunk-buffer.js';
import { DispatchRun } from './dispatch-run.js';
import { readDispatch } from './frames.js';
import type { MeshConnection } from './mesh-connection.js';

/** All dispatches of an agent, across its connections. */
export class DispatchRuns {
  readonly #deps: RunDeps;
  readonly #running = new Map<string, DispatchRun>();
  /**
   * Dispatches whose handler has ended; kept for the resume window, because the connection may break before the mesh has the result. Of those that
   * were sent no more than may be in flight: the mesh asks for no others.
   */
  readonly #answered = new Map<string, DispatchRun>();
  #sink: FrameSink | null = null;
  #resumeWindowMs = 0;
  #maxInflight: number = LIMITS.dispatchesInFlightPerConnection;

  /** @param tools makes the tool calls of the handlers */
  constructor(runTask: RunTask, tools: ToolCaller, log: AgentLog) {
    this.#deps = { runTask, tools, log };
  }

  /** Number of different sessions with running dispatches. */
  get sessionCount(): number {
    return new Set([...this.#running.values()].map((run) => run.dispatch.session_context.session_id)).size;
  }

  /** Number of running dispatches. */
  get count(): number {
    return this.#running.size;
  }

  /** The dispatches that `hello` reports as in flight. */
  inflight(): NonNullable<HelloPayload['inflight']> {
    this.#dropDelivered();
    return this.#all().map((run) => ({ dispatch_id: run.dispatch.dispatch_id, last_seq: run.resumeAfterSeq }));
  }

  /** Called after `welcome`. Without a resume the mesh has failed all dispatches, so they are aborted here too. */
  connected(connection: MeshConnection, welcome: WelcomePayload): void {
    this.#resumeWindowMs = welcome.resume_window_ms;
    this.#maxInflight = welcome.limits?.max_inflight ?? this.#maxInflight;
    this.#sink = this.#sinkOf(connection);
    if (!welcome.resumed) this.abortAll('AGENT_DISCONNECTED');
    for (const run of this.#all()) run.attach(this.#sink);
  }

  /** Called when the connection is lost. Handlers keep running, and their output is buffered. */
  disconnected(): void {
    this.#sink = null;
    for (const run of this.#all()) run.attach(null);
  }

  /** Handles a `dispatch` frame. A known dispatch is not run again; one that crossed a `close_request` is run like any other. */
  accept(frame: FrameEnvelope): void {
    const sink = this.#sink;
    if (!sink || this.#running.has(frame.id)) return;
    const answered = this.#answered.get(frame.id);
    if (answered) {
      answered.attach(sink);
      return;
    }
    const dispatch = readDispatch(frame.payload);
    const problem = dispatch
      ? this.#capacityProblem()
      : { code: 'INVALID_DISPATCH', message: 'not a dispatch of service.v1' };
    if (problem || !dispatch) sink.send('error', { retryable: problem?.code === 'AGENT_BUSY', ...problem }, frame.id);
    else this.#start(frame.id, dispatch, sink);
  }

  /** Handles an `error` frame: the mesh has ended the dispatch, if `frameId` is one. */
  endedByMesh(frameId: string, code: string): void {
    this.#answered.delete(frameId);
    const run = this.#running.get(frameId);
    if (!run) return;
    this.#deps.log.debug({ dispatch_id: run.dispatch.dispatch_id, code }, 'dispatch ended by the mesh');
    this.#remove(run);
    run.abort(code);
  }

  abortAll(code: string): void {
    for (const run of [...this.#running.values()]) {
      this.#remove(run);
      run.abort(code);
    }
    this.#answered.clear();
  }

  /** Whether no handler is running and every result was sent on the current connection. */
  get isIdle(): boolean {
    const isUnsent = (run: DispatchRun) => !run.isAborted && run.resultSentAtMs === null;
    return this.#running.size === 0 && ![...this.#answered.values()].some(isUnsent);
  }

  #start(frameId: string, dispatch: DispatchPayload, sink: FrameSink): void {
    const run = new DispatchRun(frameId, dispatch, sink);
    this.#running.set(frameId, run);
    sink.send('dispatch_ack', { accepted_at: new Date().toISOString() }, frameId);
    void run.run(this.#deps).then(() => {
      if (!this.#running.has(frameId)) return;
      this.#answered.set(frameId, run);
      this.#remove(run);
    });
  }

  #remove(run: DispatchRun): void {
    this.#running.delete(run.frameId);
    this.#dropDelivered();
  }

  #capacityProblem(): { code: string; message: string } | null {
    return this.#running.size < this.#maxInflight
      ? null
      : { code: 'AGENT_BUSY', message: 'too many dispatches at once' };
  }

  #dropDelivered(): void {
    const expiredBeforeMs = Date.now() - this.#resumeWindowMs;
    for (const [frameId, run] of this.#answered) {
      const sentAtMs = run.resultSentAtMs;
      const isDone =
        run.isAborted || (sentAtMs !== null && (sentAtMs < expiredBeforeMs || this.#answered.size > this.#maxInflight));
      if (isDone) this.#answered.delete(frameId);
    }
  }

  #all(): DispatchRun[] {
    return [...this.#running.values(), ...this.#answered.values()];
  }

  #sinkOf(connection: MeshConnection): FrameSink {
    const flushAll = () => {
      for (const run of this.#all()) run.flush();
    };
    return {
      get bufferedBytes() {
        return connection.bufferedBytes;
      },
      send: (type, payload, inReplyTo) => connection.send(type, payload, { inReplyTo }, flushAll),
    };
  }
}
