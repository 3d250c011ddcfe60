import { setMaxListeners } from 'node:events';
import { agentKeyOf } from '../agents/agent-row.js';
import type { Caller } from '../contracts/auth.js';
import { actsAs, isOwnType, mayActFor } from '../contracts/permissions.js';
import type { ToolCallRequest, ToolResult } from '../contracts/tools.js';
import type { Db } from '../db/pool.js';
import type { Dispatches } from '../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../messages/stream/bus.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import { newId, uuidOf } from '../runtime/ids.js';
import type { Logger } from '../runtime/logger.js';
import { traceparentOf } from '../runtime/trace-context.js';
import type { ToolCalls } from './tool-calls.js';
import { type NodeLink, readNamed } from './tool-link.js';
import { refusal } from './tool-result.js';
import { type CallingDispatch, findCallingDispatch, typeOfAgent } from './tool-targets.js';
import type { ToolCaller, Work } from './tool-work.js';

/** Where agents without a socket call tools: `POST /tools/call`. */
export interface ToolCallService {
  /**
   * Answers a call; a refused one too.
   * @param around.signal aborted when the caller is gone
   * @throws PlatformError `forbidden` when the token may not act for the agent, NOT_FOUND for an unknown `instance_id`
   */
  call(
    caller: Caller,
    body: ToolCallRequest,
    around: { traceparent?: string; signal: AbortSignal },
  ): Promise<ToolResult>;
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

/** Makes the door, to which other nodes bring what belongs here. */
export function createToolCallService(options: ToolCallServiceOptions): ToolCallService {
  const { link, nodeId } = options;
  const here = callHere(options);
  link.serveForwarded(async ({ token, body, traceparent }, signal) => {
    return { sent: true, result: await here.call(token, body, { traceparent, signal }) };
  });
  return {
    call: async (token, body, around) => {
      const named = readNamed(body.dispatch_id ?? '');
      if (!named || named.node === nodeId) return here.call(token, body, around);
      const { traceparent, signal } = around;
      const forwarded = { call_id: newId('call'), token, body, ...(traceparent !== undefined && { traceparent }) };
      return (await link.forward(named.node, forwarded, signal)).result;
    },
  };
}

function callHere(options: ToolCallServiceOptions): ToolCallService {
  return {
    call: async (token, { instance_id, ...payload }, { traceparent, signal }) => {
      const { tenant_id } = token;
      const work = payload.dispatch_id ? await findWork(options, token, payload.dispatch_id, instance_id) : undefined;
      if (payload.dispatch_id && !work) {
        return refusal('UNKNOWN_DISPATCH', 'dispatch_id names nothing that the agent is doing.');
      }
      try {
        const caller = work ? callerOf(tenant_id, work.agent) : await whoCalls(options, token, instance_id);
        return await options.calls.call({ caller, payload, work: work?.work, traceparent, signal });
      } finally {
        work?.leave();
      }
    },
  };
}

interface FoundWork {
  work: Work;
  agent: { instance_id: string; agent_type: string };
  /** The call that looked for it has ended. */
  leave(): void;
}

function checkActsFor(token: Caller, agentType: string): void {
  if (mayActFor(token, agentType, 'full')) return;
  throw new PlatformError('forbidden', `This needs the scope full, or a token of the agent type ${agentType}.`);
}

function callerOf(tenant_id: string, agent: FoundWork['agent']): ToolCaller {
  return { tenant_id, ...agent, key: agentKeyOf({ tenant_id, instance_id: agent.instance_id }) };
}

/** The agent that the token stands for: the instance that it names, or one of its type that stays unnamed. */
async function whoCalls(
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

async function findWork(
  options: ToolCallServiceOptions,
  token: Caller,
  id: string,
  instanceId: string | undefined,
): Promise<FoundWork | undefined> {
  const { tenant_id } = token;
  const call_id = readNamed(id)?.call_id ?? id;
  const hand = options.calls.pending.find(uuidOf(call_id));
  const isHand = hand?.call.call_id === call_id && hand.call.tenant_id === tenant_id;
  const dispatch = isHand ? null : await options.db.tenant(tenant_id, (tx) => findCallingDispatch(tx, tenant_id, id));
  const agent = isHand ? hand.call.target : dispatch;
  if (!agent || !isOwnType(token, agent.agent_type)) return undefined;
  if (instanceId !== undefined && instanceId !== agent.instance_id) return undefined;
  checkActsFor(token, agent.agent_type);
  const { instance_id, agent_type } = agent;
  const found = { agent: { instance_id, agent_type } };
  if (isHand) return { ...found, work: hand.work, leave: () => undefined };
  return dispatch ? { ...found, ...follow(options, tenant_id, id, dispatch) } : undefined;
}

/** Follows a dispatch that may run anywhere, so that its calls end with it: the bus says when to look. */
function follow(
  { bus, dispatches, log }: ToolCallServiceOptions,
  tenant_id: string,
  dispatch_id: string,
  dispatch: CallingDispatch,
): Pick<FoundWork, 'work' | 'leave'> {
  const { message_id, session_id, ms_left, trace_id } = dispatch;
  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const look = async (): Promise<void> => {
    const closed = await dispatches.closedAmong([{ tenant_id, message_id, dispatch_id }]);
    if (closed.length > 0) ended.abort();
  };
  const leave = bus.subscribe(tenant_id, message_id, 0, ({ event }) => {
    if (event.kind !== 'changed' || ended.signal.aborted) return;
    look().catch((error) => log.warn({ err: errorMessage(error), dispatch_id }, 'calling dispatch not looked up'));
  });
  const traceparent = traceparentOf(trace_id, uuidOf(dispatch_id));
  const endsAtMs = performance.now() + ms_left;
  return { work: { chain: [], endsAtMs, ended: ended.signal, session_id, traceparent }, leave };
}
