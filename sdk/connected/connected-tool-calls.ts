import type { FrameEnvelope } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { type ToolCallPayload, ToolResult } from '../../contracts/tools.js';
import type { AgentLog } from '../log.js';
import { frameId, readToolDelivery, traceparentOf } from './frames.js';
import type { MeshConnection } from './mesh-connection.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import { failureOf, ToolError } from '../tools/tool-error.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';

const lost = () => new ToolError('AGENT_DISCONNECTED', 'the connection to the mesh was lost');
const unsent = () => new ToolError('AGENT_DISCONNECTED', 'there is no connection to the mesh', { retryable: true });
const BUSY = new ToolError('AGENT_BUSY', 'no more calls now', { retryable: true });

/** The tool calls of a connected agent, those that it makes and those that it answers. They end with their connection. */
export class ToolTraffic implements ToolCaller {
  readonly #handlers: ToolHandlers;
  readonly #log: AgentLog;
  /** Calls that are being answered, by their frame. */
  readonly #running = new Map<string, AbortController>();
  /** Calls that wait for a result, by their frame. */
  readonly #waiting = new Map<string, (answer: ToolResult) => void>();
  #connection: MeshConnection | null = null;
  #idle: (() => void)[] = [];
  #quiet: (() => void)[] = [];

  constructor(handlers: ToolHandlers, log: AgentLog) {
    this.#handlers = handlers;
    this.#log = log;
  }

  /** Takes a connection, or null when it is lost: what was under way on the last one is over. */
  attach(connection: MeshConnection | null): void {
    this.#connection = connection;
    for (const run of this.#running.values()) run.abort(lost());
    this.#running.clear();
    for (const settle of [...this.#waiting.values()]) settle(failureOf(lost()));
    this.#settleIdle();
  }

  /** Settles when no call is being answered. */
  async idle(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Settles when no call is being answered, and none waits for a result. */
  async quiet(): Promise<void> {
    if (this.#running.size + this.#waiting.size > 0) await new Promise<void>((resolve) => this.#quiet.push(resolve));
  }

  async call(payload: ToolCallPayload, traceparent: string, signal: AbortSignal | undefined): Promise<ToolResult> {
    const connection = this.#connection;
    if (!connection) return failureOf(unsent());
    const id = frameId();
    const withdraw = () => {
      connection.send('error', { code: 'CANCELED', message: 'withdrawn', retryable: false }, { inReplyTo: id });
      this.#waiting.get(id)?.(failureOf(new ToolError('CANCELED', 'withdrawn')));
    };
    const answer = new Promise<ToolResult>((resolve) => this.#waiting.set(id, resolve));
    signal?.addEventListener('abort', withdraw, { once: true });
    try {
      connection.send('tool_call', payload, { id, traceparent });
      const result = await answer;
      signal?.throwIfAborted();
      return result;
    } finally {
      this.#waiting.delete(id);
      signal?.removeEventListener('abort', withdraw);
      this.#settleIdle();
    }
  }

  /** A `tool_call` frame. @param refuse the agent is on its way out */
  accept(frame: FrameEnvelope, refuse: boolean): void {
    const connection = this.#connection;
    if (!connection || this.#running.has(frame.id)) return;
    const delivery = readToolDelivery(frame.payload);
    const answer = (result: ToolResult) => connection.send('tool_result', result, { inReplyTo: frame.id });
    const isFull = this.#running.size >= LIMITS.pendingToolCallsPerAgent;
    if (!delivery || refuse || isFull) {
      answer(failureOf(delivery ? BUSY : new ToolError('BAD_REQUEST', 'not a tool call of service.v1')));
      return;
    }
    const run = new AbortController();
    this.#running.set(frame.id, run);
    const deps = { traceparent: traceparentOf(frame), signal: run.signal, tools: this, log: this.#log };
    void this.#handlers.run(delivery, deps).then((result) => {
      if (this.#running.get(frame.id) !== run) return;
      this.#running.delete(frame.id);
      answer(result);
      this.#settleIdle();
    });
  }

  /** A `tool_result` frame. */
  answered(frame: FrameEnvelope): void {
    const settle = this.#waiting.get(frame.in_reply_to ?? '');
    const result = ToolResult.safeParse(frame.payload);
    settle?.(result.success ? result.data : failureOf(new ToolError('INTERNAL', 'not a result of service.v1')));
  }

  /** An `error` frame about a call: withdrawn or out of time, or the mesh did not take it. */
  failed(callFrameId: string, code: string, message: string): void {
    this.#waiting.get(callFrameId)?.(failureOf(new ToolError(code, message)));
    this.#running.get(callFrameId)?.abort(new ToolError(code, message));
    this.#running.delete(callFrameId);
    this.#settleIdle();
  }

  #settleIdle(): void {
    if (this.#running.size > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
    if (this.#waiting.size === 0) for (const resolve of this.#quiet.splice(0)) resolve();
  }
}
