import type { Executor } from '../contracts/api/messages.js';
import type { ToolCallPayload } from '../contracts/api/tools.js';
import { LIMITS } from '../contracts/limits.js';
import { tooManyCalls } from '../db/errors.js';
import { FairSemaphore } from '../runtime/fair-semaphore.js';
import { agentKeyOf, newId } from '../runtime/ids.js';
import { boundKeyOf } from './bound-key.js';
import type { CallCancellation, Chain, ToolRequest } from './call-context.js';
import { isLoop, whyDenied } from './call-slots.js';
import type { TracedRequest } from './call-span.js';
import { PendingCalls } from './pending-calls.js';
import { isPlatformTool, type PlatformToolDeps, runPlatformTool } from './platform-tools.js';
import { type Deliver, NODE_UNREACHABLE, type NodeLink, type RoutedCall } from './tool-link.js';
import { boundedResult, type Outcome, resultOfError, unsent } from './tool-result.js';
import { findToolTargets, hasTarget, type ToolCandidate, type ToolTargets } from './tool-targets.js';

/** Concurrent lookups of target agents, in all and for one tenant; the other database connections are left to messages. */
const [LOOKUPS_AT_ONCE, OF_TENANT_AT_ONCE] = [6, 4];
/** Lookups of one tenant that wait; 429 beyond. */
const LOOKUPS_WAITING_MAX = 1_000;
/** The number of agents to try if the first ones cannot be reached. */
const TRIES_MAX = 3;

export interface ToolRouterOptions extends PlatformToolDeps {
  link: NodeLink;
  /** Sends calls to hosted agents. */
  hosted: Deliver;
}

/** Brings tool calls to agents: finds one, sends it the call over its transport, and returns the outcome. */
export class ToolRouter {
  /** The calls of this node that agents are answering. */
  readonly pending = new PendingCalls();
  readonly #options: ToolRouterOptions;
  readonly #lookups = new FairSemaphore({
    limit: LOOKUPS_AT_ONCE,
    perKey: OF_TENANT_AT_ONCE,
    waitingMax: LOOKUPS_WAITING_MAX,
    refusal: tooManyCalls,
  });
  /** The number of calls in flight from this node to each agent. */
  readonly #inFlight = new Map<string, number>();

  constructor(options: ToolRouterOptions) {
    this.#options = options;
  }

  /** A call without a parent counts as part of the longest chain, so that omitting it does not evade the depth limit. */
  chainOf({ caller, parent }: ToolRequest): Chain {
    return parent?.chain ?? this.pending.longestChain(caller.key);
  }

  /**
   * Who would make a call, before a human is asked about it: the agents of one type, or the platform.
   * @returns `impossible`: the outcome of a call that cannot be made, whoever approves it
   */
  async findExecutor(request: ToolRequest): Promise<{ executor: Executor } | { impossible: Outcome }> {
    const { payload } = request;
    if (!hasTarget(payload) && isPlatformTool(payload.tool)) {
      const reason = whyDenied(payload.tool, this.chainOf(request));
      if (reason !== undefined) return { impossible: unsent('POLICY_DENIED', reason) };
      return { executor: { type: 'platform', id: 'platform' } };
    }
    const targets = await this.#find(request);
    const [type] = targets.offered_by;
    if (type === undefined || !targets.session_known) return { impossible: noTarget(payload, targets) };
    return { executor: { type: 'agent', id: type } };
  }

  /** Makes a call. @param sending called, perhaps more than once, before it leaves for an agent or a tool */
  async route(request: TracedRequest, cancellation: CallCancellation, sending?: () => void): Promise<Outcome> {
    const { caller, payload } = request;
    const { tenant_id } = caller;
    const { tool } = payload;
    const chain = this.chainOf(request);
    if (!hasTarget(payload) && isPlatformTool(tool)) {
      const reason = whyDenied(tool, chain);
      if (reason) return unsent('POLICY_DENIED', reason);
      sending?.();
      const run = runPlatformTool(this.#options, tool, request);
      return cancellation.race(run.then((result) => ({ sent: true, result: boundedResult({ ok: true, result }) })));
    }
    const targets = await this.#find(request);
    const [first] = targets.candidates;
    if (!first || !targets.session_known) return noTarget(payload, targets);
    let outcome = NODE_UNREACHABLE;
    for (const candidate of this.#ranked(targets.candidates, tool, chain, tenant_id)) {
      const reason = whyDenied(tool, chain, candidate.instance_id);
      if (reason) return unsent('POLICY_DENIED', reason);
      if (cancellation.signal.aborted) return cancellation.unsent();
      const routed = routeTo(candidate, request, chain, cancellation.endsAtMs);
      sending?.();
      outcome = await cancellation.race(this.#deliver(candidate.mesh_id, routed, cancellation.signal));
      if (outcome.sent) return outcome;
    }
    return outcome;
  }

  #find({ caller, payload, parent }: ToolRequest): Promise<ToolTargets> {
    // The parent's session is known to exist; one that only the caller names is looked up.
    const session_id = parent?.session_id === undefined ? payload.session_id : undefined;
    const wanted = { tool: payload.tool, target: payload.target, session_id };
    return this.#lookups.run(caller.tenant_id, () =>
      this.#options.db.tenant(caller.tenant_id, (tx) => findToolTargets(tx, caller, wanted)),
    );
  }

  /** The candidates to try, the best first: those with the least load, calls in flight included; then those at capacity; last those that would loop. */
  #ranked(candidates: ToolCandidate[], tool: string, chain: Chain, tenant_id: string): ToolCandidate[] {
    const ranked = candidates.map((candidate) => {
      const { instance_id, load, busy, max_concurrent_sessions: limit } = candidate;
      const inLoop = Number(isLoop(chain, tool, instance_id));
      const atCapacity = Number(busy || (limit > 0 && load >= limit));
      const calls = this.#inFlight.get(agentKeyOf({ tenant_id, instance_id })) ?? 0;
      return { candidate, inLoop, atCapacity, load: load + calls };
    });
    ranked.sort((a, b) => a.inLoop - b.inLoop || a.atCapacity - b.atCapacity || a.load - b.load);
    return ranked.slice(0, TRIES_MAX).map(({ candidate }) => candidate);
  }

  async #deliver(meshId: string | null, routed: RoutedCall, signal: AbortSignal): Promise<Outcome> {
    const { tenant_id, target } = routed;
    const agentKey = agentKeyOf({ tenant_id, instance_id: target.instance_id });
    this.#inFlight.set(agentKey, (this.#inFlight.get(agentKey) ?? 0) + 1);
    try {
      if (target.deployment_mode === 'hosted') return await this.#toHosted(agentKey, routed, signal);
      return meshId === null ? NODE_UNREACHABLE : await this.#options.link.call(meshId, routed, signal);
    } finally {
      const left = (this.#inFlight.get(agentKey) ?? 1) - 1;
      if (left > 0) this.#inFlight.set(agentKey, left);
      else this.#inFlight.delete(agentKey);
    }
  }

  async #toHosted(agentKey: string, routed: RoutedCall, signal: AbortSignal): Promise<Outcome> {
    if (this.pending.countOf(agentKey) >= LIMITS.pendingToolCallsPerAgent) return agentBusy();
    const pending = this.pending.add(routed);
    try {
      const outcome = await this.#options.hosted(routed, signal);
      pending.settle(outcome);
      return outcome;
    } catch (error) {
      pending.settle({ sent: true, result: resultOfError(error) });
      throw error;
    }
  }
}

/** The outcome when an agent has reached its limit of pending calls. */
export function agentBusy(): Outcome {
  return unsent('AGENT_BUSY', 'The agent is answering too many calls. Call again later.');
}

function routeTo(candidate: ToolCandidate, request: TracedRequest, chain: Chain, endsAtMs: number): RoutedCall {
  const { caller, payload, parent } = request;
  const { tool } = payload;
  const call_id = newId('call');
  const { instance_id, agent_type, deployment_mode } = candidate;
  return {
    call_id,
    tenant_id: caller.tenant_id,
    target: { instance_id, agent_type, deployment_mode },
    tool,
    arguments: payload.arguments,
    caller: { agent_type: caller.agent_type, instance_id: caller.instance_id },
    session_id: parent?.session_id ?? payload.session_id ?? undefined,
    deadline_ms: Math.max(1, Math.round(endsAtMs - performance.now())),
    idempotency_key: boundKeyOf(request) ?? call_id,
    chain: [...chain, { instance_id, tool }],
    traceparent: request.span.traceparent,
    ...(request.span.message_id !== undefined && { message_id: request.span.message_id }),
  };
}

function noTarget(payload: ToolCallPayload, targets: ToolTargets): Outcome {
  if (!targets.session_known) return unsent('NOT_FOUND', 'There is no session of that session_id.');
  if (hasTarget(payload) && targets.matching === 0) {
    return unsent('TARGET_UNAVAILABLE', 'No registered agent matches the target.');
  }
  if (targets.offered_by.length === 0) return unsent('TOOL_NOT_FOUND', 'No matching agent lists this tool.');
  return unsent('TARGET_UNAVAILABLE', 'No agent that lists this tool is available now.');
}
