import { setMaxListeners } from 'node:events';
import { unknownInstance } from '../agents/agents.js';
import type { Caller } from '../contracts/api/auth.js';
import type { ToolCallRequest, ToolResult } from '../contracts/api/tools.js';
import { actsAs, isOwnType, mayActFor } from '../contracts/permissions.js';
import type { Dispatches } from '../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../messages/stream/bus.js';
import { tokenFacts } from '../policy/token-facts.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import { agentKeyOf, newId, traceparentOf, uuidOf } from '../runtime/ids.js';
import type { CallParent, ToolCaller, ToolRequest } from './call-context.js';
import type { ToolCalls, ToolCallsOptions } from './tool-calls.js';
import { parseHostedCallId } from './tool-link.js';
import { refusal } from './tool-result.js';
import { type CallingDispatch, findCallingDispatch, typeOfAgent } from './tool-targets.js';

type CallContext = Pick<ToolRequest, 'traceparent' | 'signal'>;

/** How long a request waits for a human; then its agent asks again with the same `idempotency_key`. */
const WAITS_FOR_HUMAN_MS = 60_000;

interface ToolCallServiceOptions extends Pick<ToolCallsOptions, 'db' | 'log' | 'link'> {
  calls: ToolCalls;
  /** This node. */
  meshId: string;
  dispatches: Pick<Dispatches, 'closedAmong'>;
  bus: Pick<ChunkBus, 'subscribe'>;
}

interface Calling {
  caller: ToolCaller;
  parent?: CallParent;
  /** Stops watching the parent; called when the call has ended. */
  release?: () => void;
}

/** The tool calls of agents without a socket: `POST /tools/call`. It also makes the calls that other nodes forward to this node. */
export class ToolCallService {
  readonly #options: ToolCallServiceOptions;

  constructor(options: ToolCallServiceOptions) {
    this.#options = options;
    options.link.serve({
      forward: async ({ token, body, traceparent }, signal) => {
        return { sent: true, result: await this.#callLocally(token, body, { traceparent, signal }) };
      },
    });
  }

  /**
   * Makes a call; a refusal is a result too.
   * @param context.signal aborted when the caller disconnects
   * @throws PlatformError `forbidden` when the token may not act for the agent, NOT_FOUND for an unknown `instance_id`
   */
  async call(token: Caller, body: ToolCallRequest, context: CallContext): Promise<ToolResult> {
    const { link, meshId } = this.#options;
    const parentCall = parseHostedCallId(body.dispatch_id ?? '');
    if (!parentCall || parentCall.node === meshId) return this.#callLocally(token, body, context);
    const forwarded = { call_id: newId('call'), token, body, traceparent: context.traceparent };
    return (await link.forward(parentCall.node, forwarded, context.signal)).result;
  }

  async #callLocally(token: Caller, body: ToolCallRequest, context: CallContext): Promise<ToolResult> {
    const { instance_id, ...payload } = body;
    const calling = payload.dispatch_id
      ? await this.#findParent(token, payload.dispatch_id, instance_id)
      : { caller: await this.#resolveCaller(token, instance_id) };
    if (!calling) {
      return refusal('UNKNOWN_DISPATCH', 'dispatch_id names no dispatch or tool call that the agent is answering.');
    }
    const { caller, parent, release } = calling;
    const asksAgainAfterMs = Math.min(WAITS_FOR_HUMAN_MS, payload.deadline_ms ?? WAITS_FOR_HUMAN_MS);
    const request = { caller: { ...caller, token: tokenFacts(token) }, payload, parent, asksAgainAfterMs, ...context };
    return this.#options.calls.call(request).finally(release);
  }

  /** The calling agent: the given instance, or an unnamed instance of the token's type. */
  async #resolveCaller(token: Caller, instanceId: string | undefined): Promise<ToolCaller> {
    const { tenant_id, agent_type, credential_id } = token;
    if (instanceId === undefined) {
      if (actsAs(token) === null) checkActsFor(token, agent_type);
      return { tenant_id, agent_type, key: `${tenant_id}\n${credential_id}\n${agent_type}` };
    }
    const type = await this.#options.db.tenant(tenant_id, (tx) => typeOfAgent(tx, tenant_id, instanceId));
    if (type === null || !isOwnType(token, type)) throw unknownInstance();
    checkActsFor(token, type);
    return { ...callerOf(tenant_id, instanceId, type), is_instance_claimed: true };
  }

  /** Finds the parent that a `dispatch_id` names; undefined when it does not run or is not the caller's. */
  async #findParent(token: Caller, id: string, instanceId: string | undefined): Promise<Calling | undefined> {
    const { tenant_id } = token;
    const { calls, db } = this.#options;
    const pending = calls.pending.find(tenant_id, parseHostedCallId(id)?.call_id ?? id);
    const dispatch = pending ? null : await db.tenant(tenant_id, (tx) => findCallingDispatch(tx, tenant_id, id));
    const agent = pending?.call.target ?? dispatch;
    if (!agent || !isOwnType(token, agent.agent_type)) return undefined;
    if (instanceId !== undefined && instanceId !== agent.instance_id) return undefined;
    checkActsFor(token, agent.agent_type);
    const caller = callerOf(tenant_id, agent.instance_id, agent.agent_type);
    return { caller, ...(dispatch ? this.#watch(tenant_id, id, dispatch) : { parent: pending?.asParent }) };
  }

  /** Watches a dispatch that may run on any node, so that its calls end with it. The bus announces changes; the database decides. */
  #watch(tenant_id: string, dispatch_id: string, dispatch: CallingDispatch): Omit<Calling, 'caller'> {
    const { bus, dispatches, log } = this.#options;
    const { message_id, session_id, skill_id, ms_left, trace_id, sampled } = dispatch;
    const ended = new AbortController();
    setMaxListeners(0, ended.signal);
    const release = bus.subscribe(tenant_id, message_id, 0, ({ event }) => {
      if ((event.kind !== 'changed' && event.kind !== 'gap') || ended.signal.aborted) return;
      dispatches.closedAmong([{ tenant_id, dispatch_id }]).then(
        (closed) => closed.length > 0 && ended.abort(),
        (error) => log.warn({ err: errorMessage(error), dispatch_id }, 'calling dispatch could not be read'),
      );
    });
    const traceparent = traceparentOf(trace_id, uuidOf(dispatch_id), sampled);
    const endsAtMs = performance.now() + ms_left;
    const ref = { tenant_id, message_id, dispatch_id };
    return {
      parent: {
        chain: [],
        endsAtMs,
        dispatch: ref,
        ended: ended.signal,
        session_id,
        skill_id,
        traceparent,
        message_id,
      },
      release,
    };
  }
}

function checkActsFor(token: Caller, agentType: string): void {
  if (mayActFor(token, agentType, 'full')) return;
  throw new PlatformError('forbidden', `This needs the scope full, or a token of the agent type ${agentType}.`);
}

function callerOf(tenant_id: string, instance_id: string, agent_type: string): ToolCaller {
  return { tenant_id, instance_id, agent_type, key: agentKeyOf({ tenant_id, instance_id }) };
}
