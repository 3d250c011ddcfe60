import pLimit from 'p-limit';
import type { ToolCallPayload, ToolResult } from '../contracts/api/tools.js';
import { LIMITS } from '../contracts/limits.js';
import { agentKeyOf, newId, traceFrom, traceparentOf, uuidOf } from '../runtime/ids.js';
import type { Logger } from '../runtime/logger.js';
import { CallCancellation, type CallParent, type Chain, type ToolCaller } from './call-context.js';
import { IdempotencyCache } from './idempotency-cache.js';
import { PendingCalls } from './pending-calls.js';
import { isPlatformTool, type PlatformToolDeps, runPlatformTool } from './platform-tools.js';
import { Admission, isLoop, whyDenied } from './tool-admission.js';
import { type Deliver, NODE_UNREACHABLE, type NodeLink, type RoutedCall } from './tool-link.js';
import { boundedResult, type Outcome, refusal, resultOfError, unsent } from './tool-result.js';
import { findToolTargets, type ToolCandidate, type ToolTargets } from './tool-targets.js';

/** Concurrent lookups of target agents; the other database connections are left to messages. */
const CONCURRENT_LOOKUPS = 6;
/** The number of agents to try if the first ones cannot be reached. */
const TRIES_MAX = 3;

export interface ToolCallsOptions extends PlatformToolDeps {
  log: Logger;
  link: NodeLink;
  /** Sends calls to hosted agents. */
  hosted: Deliver;
}

/** A tool call as it was received. */
export interface ToolRequest {
  caller: ToolCaller;
  payload: ToolCallPayload;
  /** The parent that `payload.dispatch_id` names; it runs and belongs to the caller. */
  parent: CallParent | undefined;
  /** The trace context of the request. */
  traceparent?: string;
  /** Aborted when the caller disconnects or withdraws the call. */
  signal: AbortSignal;
}

/** Routes tool calls: finds an agent, sends it the call over its transport, and returns the result. */
export class ToolCalls {
  /** The calls of this node that agents are answering. */
  readonly pending = new PendingCalls();
  readonly #options: ToolCallsOptions;
  readonly #admission = new Admission();
  readonly #idempotency = new IdempotencyCache();
  readonly #lookupLimit = pLimit(CONCURRENT_LOOKUPS);
  /** The number of calls in flight from this node to each agent. */
  readonly #inFlight = new Map<string, number>();

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  /** Sets the handler of calls to agents whose sockets this node holds. */
  serve(deliver: Deliver): void {
    this.#options.link.serve({ call: deliver });
  }

  /** Makes a call. Never rejects. */
  async call(request: ToolRequest): Promise<ToolResult> {
    const bytes = Buffer.byteLength(JSON.stringify(request.payload.arguments));
    if (bytes > LIMITS.toolArgumentsBytes) {
      return refusal('PAYLOAD_TOO_LARGE', `arguments may have ${LIMITS.toolArgumentsBytes} bytes.`);
    }
    const leave = this.#admission.enter(request.caller.key, bytes);
    if (!leave) return refusal('RATE_LIMITED', 'Too many calls are in flight. Wait for a result.');
    using cancellation = new CallCancellation(deadlineOf(request), request.signal, request.parent);
    try {
      const { caller, payload } = request;
      return await this.#idempotency.once(caller.key, payload, cancellation, () => this.#run(request, cancellation));
    } catch (error) {
      this.#options.log.warn({ err: error, tenant_id: request.caller.tenant_id }, 'tool call failed in the platform');
      return resultOfError(error);
    } finally {
      leave();
    }
  }

  async #run(request: ToolRequest, cancellation: CallCancellation): Promise<Outcome> {
    const { caller, payload, parent } = request;
    const { tenant_id } = caller;
    const { tool } = payload;
    // A call without a parent counts as part of the longest chain, so that omitting it does not evade the depth limit.
    const chain = parent?.chain ?? this.pending.longestChain(caller.key);
    if (!hasTarget(payload) && isPlatformTool(tool)) {
      const denial = whyDenied(tool, chain);
      if (denial) return unsent('POLICY_DENIED', denial);
      const run = runPlatformTool(this.#options, caller, tool, payload.arguments);
      return cancellation.race(run.then((result) => ({ sent: true, result: boundedResult({ ok: true, result }) })));
    }
    const targets = await this.#find(request);
    const [first] = targets.candidates;
    if (!first || !targets.session_known) return noTarget(payload, targets);
    let outcome = NODE_UNREACHABLE;
    for (const candidate of this.#ranked(targets.candidates, tool, chain, tenant_id)) {
      const denial = whyDenied(tool, chain, candidate.instance_id);
      if (denial) return unsent('POLICY_DENIED', denial);
      if (cancellation.signal.aborted) return cancellation.unsent();
      const routed = routeTo(candidate, request, chain, cancellation.endsAtMs);
      outcome = await cancellation.race(this.#deliver(candidate.mesh_id, routed, cancellation.signal));
      if (outcome.sent) return outcome;
    }
    return outcome;
  }

  #find({ caller, payload, parent }: ToolRequest): Promise<ToolTargets> {
    // The parent's session is known to exist; one that only the caller names is looked up.
    const session_id = parent?.session_id === undefined ? payload.session_id : undefined;
    const wanted = { tool: payload.tool, target: payload.target, session_id };
    return this.#lookupLimit(() =>
      this.#options.db.tenant(caller.tenant_id, (tx) => findToolTargets(tx, caller, wanted)),
    );
  }

  /** The candidates to try, the best first: by load, calls in flight included; those at capacity after these, those in a loop with this call last. */
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

/** The deadline of a call, on `performance.now()`. */
function deadlineOf({ payload, parent }: ToolRequest): number {
  const requestedMs = payload.deadline_ms ?? (parent ? LIMITS.deadlineMsMax : LIMITS.toolDeadlineMsDefault);
  return Math.min(performance.now() + requestedMs, parent?.endsAtMs ?? Number.POSITIVE_INFINITY);
}

function routeTo(candidate: ToolCandidate, request: ToolRequest, chain: Chain, endsAtMs: number): RoutedCall {
  const { caller, payload, parent } = request;
  const { tool } = payload;
  const call_id = newId('call');
  const { instance_id, agent_type, deployment_mode } = candidate;
  const { trace_id } = traceFrom(request.traceparent ?? parent?.traceparent);
  return {
    call_id,
    tenant_id: caller.tenant_id,
    target: { instance_id, agent_type, deployment_mode },
    tool,
    arguments: payload.arguments,
    caller: { agent_type: caller.agent_type, instance_id: caller.instance_id },
    session_id: parent?.session_id ?? payload.session_id ?? undefined,
    deadline_ms: Math.max(1, Math.round(endsAtMs - performance.now())),
    idempotency_key: payload.idempotency_key ?? call_id,
    chain: [...chain, { instance_id, tool }],
    traceparent: traceparentOf(trace_id, uuidOf(call_id)),
  };
}

function hasTarget({ target }: ToolCallPayload): boolean {
  return (target?.instance_id ?? target?.agent_type ?? target?.skill_id) !== undefined;
}

function noTarget(payload: ToolCallPayload, targets: ToolTargets): Outcome {
  if (!targets.session_known) return unsent('NOT_FOUND', 'There is no session of that session_id.');
  if (hasTarget(payload) && targets.matching === 0) {
    return unsent('TARGET_UNAVAILABLE', 'No registered agent matches the target.');
  }
  if (targets.offering === 0) return unsent('TOOL_NOT_FOUND', 'No matching agent lists this tool.');
  return unsent('TARGET_UNAVAILABLE', 'No agent that lists this tool is available now.');
}
