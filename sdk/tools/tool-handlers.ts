import { z } from 'zod';
import type { Tools } from '../../contracts/api/agents.js';
import type { ToolDelivery, ToolResult } from '../../contracts/api/tools.js';
import { LIMITS } from '../../contracts/limits.js';
import { requireHandler } from '../handlers/handlers.js';
import { logFailure } from '../handlers/run-dispatch.js';
import { type Field, sendable } from '../handlers/sendable.js';
import type { AgentLog } from '../log.js';
import { checked, type InputSchema, jsonSchemaOf, requireUsable, type SchemaOutput } from '../schema/schema.js';
import { inSpan } from '../tracing.js';
import { type CallTool, callToolBy, type ToolCaller } from './tool-caller.js';
import { failureOf, ToolError } from './tool-error.js';

/** A call to one of this agent's tools. */
export interface ToolCall {
  readonly tool: string;
  readonly callId: string;
  /** The session that the caller is working on; undefined outside a session. */
  readonly sessionId: string | undefined;
  /** The caller, as authenticated by the platform. */
  readonly caller: { agentType: string; instanceId: string | undefined };
  /** A repeat of the same call in the same session has the same key. It is made by the platform, not the caller's own. */
  readonly idempotencyKey: string;
  /** Milliseconds that were left for the answer when the call arrived. */
  readonly deadlineMs: number;
  /** W3C trace context; empty when the call had none. */
  readonly traceparent: string;
  /** Aborted when the call is canceled, exceeds its deadline or is lost with the connection. */
  readonly signal: AbortSignal;
  /** Calls another tool as part of this call. */
  readonly callTool: CallTool;
}

/** Answers calls to a tool with any JSON value. The caller receives a thrown `ToolError` with its code, and any other error as `HANDLER_ERROR`. */
export type ToolHandler<Args> = (args: Args, call: ToolCall) => unknown;

type RunTool = (args: unknown, call: ToolCall) => unknown;

/** Dependencies of a tool call. */
export interface ToolCallDeps {
  /** W3C trace context; empty when the call had none. */
  traceparent: string;
  signal: AbortSignal;
  /** Makes the tool calls of the handler. */
  tools: ToolCaller;
  log: AgentLog;
}

const RESULT: Field = {
  name: 'the result',
  schema: z.unknown(),
  depth: 3,
  maxBytes: LIMITS.toolResultBytes,
  remedy: 'return a JSON value, or nothing',
};

/** The tools of an agent. */
export class ToolHandlers {
  /** The tools as registrations and `hello` list them. */
  readonly tools: z.infer<typeof Tools> = [];
  readonly #byName = new Map<string, RunTool>();

  /** @param schema parses the arguments; its description becomes the tool's */
  add<Schema extends InputSchema>(name: string, schema: Schema, handler: ToolHandler<SchemaOutput<Schema>>): void {
    if (this.#byName.has(name)) throw new Error(`the tool ${name} is already defined`);
    requireHandler(`tool('${name}', schema, handler)`, handler);
    requireUsable(schema);
    const { description, ...input_schema } = jsonSchemaOf(schema);
    this.tools.push({ name, ...(typeof description === 'string' && { description }), input_schema });
    this.#byName.set(name, async (args, call) => {
      const { value, problem } = await checked(schema, args);
      if (problem !== null) throw new ToolError(problem, { code: 'BAD_REQUEST' });
      return handler(value as SchemaOutput<Schema>, call);
    });
  }

  /** Answers one call; never rejects. */
  async run(delivery: ToolDelivery, deps: ToolCallDeps): Promise<ToolResult> {
    const runTool = this.#byName.get(delivery.tool);
    if (!runTool) return failureOf(new ToolError('this agent has no such tool', { code: 'TOOL_NOT_FOUND' }));
    const handler = `tool ${delivery.tool}`;
    try {
      const { dispatch_id, session_id } = delivery;
      const ids = { 'fleet.dispatch.id': dispatch_id, 'gen_ai.conversation.id': session_id };
      const call = toolCallOf(delivery, deps);
      const result = await inSpan(handler, deps.traceparent, ids, async () => runTool(delivery.arguments, call));
      return { ok: true, result: sendable(result ?? null, RESULT) };
    } catch (error) {
      const isExpected = error instanceof ToolError || deps.signal.aborted;
      if (!isExpected) logFailure(deps.log, { handler, dispatch_id: delivery.dispatch_id }, error);
      return failureOf(error, handler);
    }
  }
}

function toolCallOf(delivery: ToolDelivery, { traceparent, signal, tools, log }: ToolCallDeps): ToolCall {
  const { tool, dispatch_id: callId, session_id, deadline_ms, idempotency_key, caller } = delivery;
  return {
    tool,
    callId,
    sessionId: session_id,
    caller: { agentType: caller.agent_type, instanceId: caller.instance_id },
    idempotencyKey: idempotency_key,
    deadlineMs: deadline_ms,
    traceparent,
    signal,
    callTool: callToolBy(tools, log, { dispatchId: callId, traceparent, signal }),
  };
}
