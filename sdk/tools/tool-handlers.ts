import { z } from 'zod';
import type { Tools } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { ToolDelivery, ToolResult } from '../../contracts/tools.js';
import type { AgentLog } from '../log.js';
import { logFailure } from '../handlers/run-handler.js';
import { type Field, sendable } from '../handlers/sendable.js';
import { type CallTool, callToolBy, type ToolCaller } from './tool-caller.js';
import { failureOf, ToolError } from './tool-error.js';

/** A call of one of this agent's tools. */
export interface ToolCall {
  readonly tool: string;
  readonly callId: string;
  /** The session that the caller works for, where it works for one. */
  readonly sessionId: string | undefined;
  /** Who calls, as the platform knows it. */
  readonly caller: { agentType: string; instanceId: string | undefined };
  /** The same for a repeat of the same call. */
  readonly idempotencyKey: string;
  /** Milliseconds that were left when the call arrived. */
  readonly deadlineMs: number;
  /** W3C trace context; empty where the call had none. */
  readonly traceparent: string;
  /** Aborted when the call is withdrawn, out of time, or lost to a disconnect. */
  readonly signal: AbortSignal;
  /** Calls another tool on behalf of this call. */
  readonly callTool: CallTool;
}

/** Answers calls of a tool with anything that JSON can say. What it throws the caller gets as `HANDLER_ERROR`, or as a `ToolError` says. */
export type ToolHandler<Args> = (args: Args, call: ToolCall) => unknown;

type Runner = (args: unknown, call: ToolCall) => unknown;

/** What answering a call takes. */
export interface ToolCallDeps {
  /** W3C trace context; empty where the call had none. */
  traceparent: string;
  signal: AbortSignal;
  /** The way of the calls that the handler makes itself. */
  tools: ToolCaller;
  log: AgentLog;
}

const RESULT: Field = {
  name: 'the result',
  schema: z.unknown(),
  depth: 3,
  maxBytes: LIMITS.toolResultBytes,
  remedy: 'return what JSON can say, or nothing',
};

/** The tools of an agent. */
export class ToolHandlers {
  /** As registrations and `hello` tell of them. */
  readonly tools: z.infer<typeof Tools> = [];
  readonly #byName = new Map<string, Runner>();

  /** @param schema reads the arguments; its description is the tool's */
  add<Schema extends z.ZodType>(name: string, schema: Schema, handler: ToolHandler<z.output<Schema>>): void {
    if (this.#byName.has(name)) throw new Error(`the tool ${name} was given already`);
    const { $schema: _dialect, description, ...input_schema } = z.toJSONSchema(schema, { io: 'input' });
    this.tools.push({ name, ...(description !== undefined && { description }), input_schema });
    this.#byName.set(name, (args, call) => {
      const read = schema.safeParse(args);
      if (!read.success) throw new ToolError('BAD_REQUEST', z.prettifyError(read.error));
      return handler(read.data, call);
    });
  }

  /** Answers one call; never rejects. */
  async run(delivery: ToolDelivery, deps: ToolCallDeps): Promise<ToolResult> {
    const runner = this.#byName.get(delivery.tool);
    if (!runner) return failureOf(new ToolError('TOOL_NOT_FOUND', 'this agent has no such tool'));
    const handler = `tool ${delivery.tool}`;
    try {
      const result = await runner(delivery.arguments, toolCallOf(delivery, deps));
      return { ok: true, result: sendable(result ?? null, RESULT) };
    } catch (error) {
      const isMeant = error instanceof ToolError || deps.signal.aborted;
      if (!isMeant) logFailure(deps.log, { handler, dispatch_id: delivery.dispatch_id }, error);
      return failureOf(error, handler);
    }
  }
}

function toolCallOf(delivery: ToolDelivery, { traceparent, signal, tools }: ToolCallDeps): ToolCall {
  const { tool, dispatch_id: callId, session_id, deadline_ms, idempotency_key, caller: by } = delivery;
  return {
    tool,
    callId,
    sessionId: session_id,
    caller: { agentType: by.agent_type, instanceId: by.instance_id },
    idempotencyKey: idempotency_key,
    deadlineMs: deadline_ms,
    traceparent,
    signal,
    callTool: callToolBy(tools, { dispatchId: callId, traceparent, signal }),
  };
}
