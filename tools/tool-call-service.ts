import { setMaxListeners } from 'node:events';
import type { Caller } from '../contracts/api/auth.js';
import type { ToolCallRequest, ToolResult } from '../contracts/api/tools.js';
import { actsAs, isOwnType, mayActFor } from '../contracts/permissions.js';
import type { Db } from '../db/pool.js';
import type { Dispatches } from '../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../messages/stream/bus.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import { agentKeyOf, newId, traceparentOf, uuidOf } from '../runtime/ids.js';
import type { Logger } from '../runtime/logger.js';
import type { CallParent, ToolCaller } from './call-context.js';
import type { ToolCalls } from './tool-calls.js';
import { type NodeLink, parseHostedCallId } from './tool-link.js';
import { refusal } from './tool-result.js';
import { type CallingDispatch, findCallingDispatch, typeOfAgent } from './tool-targets.js';

/** The tool calls of agents without a socket: `POST /tools/call`. */
export interface ToolCallService {
  /**
   * Makes a call; a refusal is a result too.
   * @param context.signal aborted when the caller disconnects
   * @throws PlatformError `forbidden` when the token may not act for the agent, NOT_FOUND for an unknown `instance_id`
   */
  call(caller: Caller, body: ToolCallRequest, context: CallContext): Promise<ToolResult>;
}

interface CallContext {
  traceparent?: string;
  signal: AbortSignal;
}

interface ToolCallServiceOptions {
  db: Db;
  log: Logger;
  calls: ToolCalls;
  link: NodeLink;
  /** This node. */
  nodeId: string;
  dispatches: Pick<Dispatches, 'closedAmong'>;
  bus: Pick<ChunkBus, 'subscribe'>;
}

/** Creates the service; it also makes the calls that other nodes forward to this node. */
export function createToolCallService(options: ToolCallServiceOptions): ToolCallService {
  const { link, nodeId } = options;
  link.serveForwarded(async ({ token, body, traceparent }, signal) => {
    return { sent: true, result: await callLocally(options, token, body, { traceparent, signal }) };
  });
  return {
    call: async (token, body, context) => {
      const parentCall = parseHostedCallId(body.dispatch_id ?? '');
      if (!parentCall || parentCall.node === nodeId) return callLocally(options, token, body, context);
      const { traceparent, signal } = context;
      const forwarded = { call_id: newId('call'), token, body, ...(traceparent !== undefined && { traceparent }) };
      return (await link.forward(parentCall.node, forwarded, signal)).result;
    },
  };
}

async function callLocally(
  options: ToolCallServiceOptions,
  token: Caller,
  { instance_id, ...payload }: ToolCallRequest,
  { traceparent, signal }: CallContext,
): Promise<ToolResult> {
  const { tenant_id } = token;
  const found = payload.dispatch_id ? await findParent(options, token, payload.dispatch_id, instance_id) : undefined;
  if (payload.dispatch_id && !found) {
    return refusal('UNKNOWN_DISPATCH', 'dispatch_id names no dispatch or tool call that the agent is answering.');
  }
  try {
    const caller = found ? callerOf(tenant_id, found.agent) : await resolveCaller(options, token, instance_id);
    return await options.calls.call({ caller, payload, parent: found?.parent, traceparent, signal });
  } finally {
    found?.release();
  }
}

interface FoundParent {
  parent: CallParent;
  agent: { instance_id: string; agent_type: string };
  /** Stops watching the parent; called when the call has ended. */
  release(): void;
}

function checkActsFor(token: Caller, agentType: string): void {
  if (mayActFor(token, agentType, 'full')) return;
  throw new PlatformError('forbidden', `This needs the scope full, or a token of the agent type ${agentType}.`);
}

function callerOf(tenant_id: string, agent: FoundParent['agent']): ToolCaller {
  return { tenant_id, ...agent, key: agentKeyOf({ tenant_id, instance_id: agent.instance_id }) };
}

/** The calling agent: the given instance, or an unnamed instance of the token's type. */
async function resolveCaller(
  { db }: ToolCallServiceOptions,
  token: Caller,
  instanceId: string | undefined,
): Promise<ToolCaller> {
  const { tenant_id, agent_type, credential_id } = token;
  if (instanceId === undefined) {
    if (actsAs(token) === null) checkActsFor(token, agent_type);
    return { tenant_id, agent_type, key: `${tenant_id}\n${credential_id}\n${agent_type}` };
  }
  const type = await db.tenant(tenant_id, (tx) => typeOfAgent(tx, tenant_id, instanceId));
  if (type === null || !isOwnType(token, type))
    throw new PlatformError('NOT_FOUND', 'There is no agent of that instance_id.');
  checkActsFor(token, type);
  return callerOf(tenant_id, { instance_id: instanceId, agent_type: type });
}

/** Finds the parent that a `dispatch_id` names; undefined when it does not run or is not the caller's. */
async function findParent(
  options: ToolCallServiceOptions,
  token: Caller,
  id: string,
  instanceId: string | undefined,
): Promise<FoundParent | undefined> {
  const { tenant_id } = token;
  const call_id = parseHostedCallId(id)?.call_id ?? id;
  const pending = options.calls.pending.find(uuidOf(call_id));
  const isCall = pending?.call.call_id === call_id && pending.call.tenant_id === tenant_id;
  const dispatch = isCall ? null : await options.db.tenant(tenant_id, (tx) => findCallingDispatch(tx, tenant_id, id));
  const agent = isCall ? pending.call.target : dispatch;
  if (!agent || !isOwnType(token, agent.agent_type)) return undefined;
  if (instanceId !== undefined && instanceId !== agent.instance_id) return undefined;
  checkActsFor(token, agent.agent_type);
  const { instance_id, agent_type } = agent;
  const found = { agent: { instance_id, agent_type } };
  if (isCall) return { ...found, parent: pending.asParent, release: () => undefined };
  return dispatch ? { ...found, ...watchDispatch(options, tenant_id, id, dispatch) } : undefined;
}

/** Watches a dispatch that may run on any node, so that its calls end with it. The bus announces changes; the database decides. */
function watchDispatch(
  { bus, dispatches, log }: ToolCallServiceOptions,
  tenant_id: string,
  dispatch_id: string,
  dispatch: CallingDispatch,
): Pick<FoundParent, 'parent' | 'release'> {
  const { message_id, session_id, ms_left, trace_id } = dispatch;
  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const check = async (): Promise<void> => {
    const closed = await dispatches.closedAmong([{ tenant_id, message_id, dispatch_id }]);
    if (closed.length > 0) ended.abort();
  };
  const release = bus.subscribe(tenant_id, message_id, 0, ({ event }) => {
    if (event.kind !== 'changed' || ended.signal.aborted) return;
    check().catch((error) => log.warn({ err: errorMessage(error), dispatch_id }, 'calling dispatch could not be read'));
  });
  const traceparent = traceparentOf(trace_id, uuidOf(dispatch_id));
  const endsAtMs = performance.now() + ms_left;
  return { parent: { chain: [], endsAtMs, ended: ended.signal, session_id, traceparent }, release };
}
