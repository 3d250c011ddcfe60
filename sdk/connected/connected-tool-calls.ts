import { type ToolCallPayload, ToolResult } from '../../contracts/api/tools.js';
import type { FrameEnvelope } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { TaskDeadline } from '../handlers/task-deadline.js';
import type { AgentLog } from '../log.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import { failureOf, ToolError } from '../tools/tool-error.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';
import { frameId, readToolDelivery, traceparentOf } from './frames.js';
import type { MeshConnection } from './mesh-connection.js';

const connectionLost = () => new ToolError('the connection to the mesh was lost', { code: 'AGENT_DISCONNECTED' });
const notConnected = () =>
  new ToolError('there is no connection to the mesh', { code: 'AGENT_DISCONNECTED', retryable: true });
const BUSY = new ToolError('no more calls now', { code: 'AGENT_BUSY', retryable: true });

/** A call that waits for its result. */
interface OutgoingCall {
  /** A human is asked about it. */
  isPending: boolean;
  /** The platform says that a human is asked: its result follows. */
  wait(): void;
  settle(result: ToolResult): void;
}

/** The tool calls of a connected agent, outgoing and incoming. They end with their connection. */
export class ConnectedToolCalls implements ToolCaller {
  readonly #handlers: ToolHandlers;
  readonly #log: AgentLog;
  /** Incoming calls that are being answered, by frame id. */
  readonly #incoming = new Map<string, AbortController>();
  /** Outgoing calls that wait for a result, by frame id. */
  readonly #outgoing = new Map<string, OutgoingCall>();
  #connection: MeshConnection | null = null;
  #onAllDone: (() => void)[] = [];

  constructor(handlers: ToolHandlers, log: AgentLog) {
    this.#handlers = handlers;
    this.#log = log;
  }

  /**
   * Sets the connection, or null when it is lost. The calls of the previous connection fail, but for those that wait for a human: their
   * results come on the connection that resumes it.
   * @param resumed whether the connection continues the one before
   */
  attach(connection: MeshConnection | null, resumed = connection === null): void {
    this.#connection = connection;
    for (const run of this.#incoming.values()) run.abort(connectionLost());
    this.#incoming.clear();
    for (const call of [...this.#outgoing.values()])
      if (!call.isPending || !resumed) call.settle(failureOf(connectionLost()));
    this.#resolveWaiters();
  }

  /** Resolves when no incoming call is being answered and no outgoing call waits for a result. */
  async allSettled(): Promise<void> {
    if (this.#incoming.size + this.#outgoing.size > 0)
      await new Promise<void>((resolve) => this.#onAllDone.push(resolve));
  }

  async call(
    payload: ToolCallPayload,
    traceparent: string,
    signal: AbortSignal | undefined,
    deadline?: TaskDeadline,
  ): Promise<ToolResult> {
    const connection = this.#connection;
    if (!connection) return failureOf(notConnected());
    const id = frameId();
    const cancel = () => {
      this.#connection?.send('error', { code: 'CANCELED', message: 'withdrawn', retryable: false }, { inReplyTo: id });
      this.#outgoing.get(id)?.settle(failureOf(new ToolError('withdrawn', { code: 'CANCELED' })));
    };
    let resume: (() => void) | undefined;
    const answer = new Promise<ToolResult>((settle) => {
      const call: OutgoingCall = {
        isPending: false,
        settle,
        wait: () => {
          call.isPending = true;
          resume ??= deadline?.pause();
        },
      };
      this.#outgoing.set(id, call);
    });
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      connection.send('tool_call', payload, { id, traceparent });
      const result = await answer;
      signal?.throwIfAborted();
      return result;
    } finally {
      this.#outgoing.delete(id);
      resume?.();
      signal?.removeEventListener('abort', cancel);
      this.#resolveWaiters();
    }
  }

  /** Handles a `tool_call` frame. @param refuse whether the agent or the mesh is shutting down */
  receiveCall(frame: FrameEnvelope, refuse: boolean): void {
    const connection = this.#connection;
    if (!connection || this.#incoming.has(frame.id)) return;
    const delivery = readToolDelivery(frame.payload);
    const answer = (result: ToolResult) => connection.send('tool_result', result, { inReplyTo: frame.id });
    const isFull = this.#incoming.size >= LIMITS.pendingToolCallsPerAgent;
    if (!delivery || refuse || isFull) {
      answer(failureOf(delivery ? BUSY : new ToolError('not a tool call of service.v1', { code: 'BAD_REQUEST' })));
      return;
    }
    const run = new AbortController();
    this.#incoming.set(frame.id, run);
    const deps = { traceparent: traceparentOf(frame), signal: run.signal, tools: this, log: this.#log };
    void this.#handlers.run(delivery, deps).then((result) => {
      if (this.#incoming.get(frame.id) !== run) return;
      this.#incoming.delete(frame.id);
      answer(result);
      this.#resolveWaiters();
    });
  }

  /** Handles a `tool_result` frame. */
  receiveResult(frame: FrameEnvelope): void {
    const call = this.#outgoing.get(frame.in_reply_to ?? '');
    const { data: result = failureOf(new ToolError('not a result of service.v1', { code: 'INTERNAL' })) } =
      ToolResult.safeParse(frame.payload);
    if (!result.ok && result.error.code === 'APPROVAL_PENDING') call?.wait();
    else call?.settle(result);
  }

  /** Handles an `error` frame about a call: it was canceled, exceeded its deadline, or was refused by the mesh. */
  receiveError(callFrameId: string, code: string, message: string): void {
    this.#outgoing.get(callFrameId)?.settle(failureOf(new ToolError(message, { code })));
    this.#incoming.get(callFrameId)?.abort(new ToolError(message, { code }));
    this.#incoming.delete(callFrameId);
    this.#resolveWaiters();
  }

  #resolveWaiters(): void {
    if (this.#incoming.size + this.#outgoing.size > 0) return;
    for (const resolve of this.#onAllDone.splice(0)) resolve();
  }
}
