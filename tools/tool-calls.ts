import pLimit from 'p-limit';
import { agentKeyOf } from '../agents/agent-key.js';
import { LIMITS } from '../contracts/limits.js';
import type { ToolCallPayload, ToolResult } from '../contracts/tools.js';
import type { Db } from '../db/pool.js';
import { newId, uuidOf } from '../runtime/ids.js';
import type { Logger } from '../runtime/logger.js';
import { traceFrom, traceparentOf } from '../runtime/trace-context.js';
import { IdempotencyCache } from './idempotency-cache.js';
import { PendingCalls } from './pending-calls.js';
import type { PlatformTools } from './platform-tools.js';
import { Admission } from './tool-admission.js';
import { CallEnding } from './tool-deadline.js';
import { authorize, isLoop } from './tool-gate.js';
import { type Deliver, NOBODY, type NodeLink, type PlacedCall } from './tool-link.js';
import { type Outcome, refusal, resultOfThrown, unsent } from './tool-result.js';
import { findToolTargets, type ToolCandidate, type ToolTargets } from './tool-targets.js';
import type { Chain, ToolCaller, Work } from './tool-work.js';

/** Agents are looked for by so many calls at once; the rest of the database's connections is left to messages. */
const LOOKUPS_AT_ONCE = 6;
/** How many agents are tried where the first could not be reached. */
const TRIES_MAX = 3;

export interface ToolCallsOptions {
  db: Db;
  log: Logger;
  link: NodeLink;
  /** The way to hosted agents. */
  hosted: Deliver;
  platform: PlatformTools;
}

/** A call as it came. */
export interface ToolRequest {
  caller: ToolCaller;
  payload: ToolCallPayload;
  /** What it is part of, where it says so: `payload.dispatch_id`, found open and the caller's own. */
  work: Work | undefined;
  /** The trace context that came with it. */
  traceparent?: string;
  /** Aborted when the caller is gone, or withdraws it. */
  signal: AbortSignal;
}

/** Routes tool calls: finds the agent, brings the call there by whatever way leads there, and the result back. */
export class ToolCalls {
  /** What agents are answering for this node. */
  readonly pending = new PendingCalls();
  readonly #options: ToolCallsOptions;
  readonly #admission = new Admission();
  readonly #idempotency = new IdempotencyCache();
  readonly #lookupLimit = pLimit(LOOKUPS_AT_ONCE);
  /** Calls that are with an agent, as far as this node has sent them. */
  readonly #towards = new Map<string, number>();

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  /** Calls for agents whose sockets are here go to `deliver` from now on. */
  serve(deliver: Deliver): void {
    this.#options.link.serve(deliver);
  }

  /** Answers a call. Never rejects. */
  async call(request: ToolRequest): Promise<ToolResult> {
    const bytes = Buffer.byteLength(JSON.stringify(request.payload.arguments));
    if (bytes > LIMITS.toolArgumentsBytes) {
      return refusal('PAYLOAD_TOO_LARGE', `arguments may have ${LIMITS.toolArgumentsBytes} bytes.`);
    }
    const leave = this.#admission.enter(request.caller.key, bytes);
    if (!leave) return refusal('RATE_LIMITED', 'Too many calls are in flight. Wait for a result.');
    const ending = new CallEnding(endOf(request), request.signal, request.work);
    try {
      const { caller, payload } = request;
      return await this.#idempotency.once(caller.key, payload, ending, () => this.#run(request, ending));
    } catch (error) {
      this.#options.log.warn({ err: error, tenant_id: request.caller.tenant_id }, 'tool call failed inside the mesh');
      return resultOfThrown(error);
    } finally {
      ending.dispose();
      leave();
    }
  }

  async #run(request: ToolRequest, ending: CallEnding): Promise<Outcome> {
    const { caller, payload, work } = request;
    const chain = work?.chain ?? this.#chainOf(caller);
    const { platform } = this.#options;
    if (!hasTarget(payload) && platform.owns(payload.tool)) return this.#runOwn(request, chain, ending);
    const targets = await this.#find(request);
    const [first] = targets.candidates;
    if (!first || !targets.session_known) return whyNone(payload, targets);
    let outcome = NOBODY;
    for (const candidate of this.#ranked(targets.candidates, payload.tool, chain, caller.tenant_id)) {
      const verdict = authorize({ caller, tool: payload.tool, arguments: payload.arguments, target: candidate, chain });
      if (!verdict.allowed) return unsent(verdict.code, verdict.message);
      if (ending.signal.aborted) return ending.unsent();
      const placed = place(request, candidate, chain, ending.endsAtMs);
      outcome = await ending.before(this.#deliver(candidate, placed, ending.signal));
      if (outcome.sent) return outcome;
    }
    return outcome;
  }

  async #runOwn(request: ToolRequest, chain: Chain, ending: CallEnding): Promise<Outcome> {
    const { caller, payload, work } = request;
    const { platform } = this.#options;
    if (!platform.owns(payload.tool)) return unsent('TOOL_NOT_FOUND', 'The platform has no such tool.');
    const verdict = authorize({ caller, tool: payload.tool, arguments: payload.arguments, target: null, chain });
    if (!verdict.allowed) return unsent(verdict.code, verdict.message);
    const session_id = work?.session_id ?? payload.session_id ?? undefined;
    const run = platform.run(payload.tool, {
      tenant_id: caller.tenant_id,
      arguments: payload.arguments,
      ...(session_id !== undefined && { session_id }),
      signal: ending.signal,
    });
    return ending.before(run.then((result) => ({ sent: true, result: { ok: true, result } })));
  }

  /** A caller that names no work may be on any that it has: the deepest counts, so that silence does not get around the depth. */
  #chainOf({ tenant_id, instance_id }: ToolCaller): Chain {
    return instance_id === undefined ? [] : this.pending.deepest(agentKeyOf({ tenant_id, instance_id }));
  }

  #find({ caller, payload, work }: ToolRequest): Promise<ToolTargets> {
    // That of the work is known; one that only the caller names is looked for.
    const session_id = work?.session_id === undefined ? payload.session_id : undefined;
    const wanted = { tool: payload.tool, target: payload.target, session_id };
    return this.#lookupLimit(() =>
      this.#options.db.tenant(caller.tenant_id, (tx) => findToolTargets(tx, caller, wanted)),
    );
  }

  /** Those that are waiting for this very tool already come last, then those that are full; then the load counts, calls included. */
  #ranked(candidates: ToolCandidate[], tool: string, chain: Chain, tenant_id: string): ToolCandidate[] {
    const rank = ({ instance_id, load, busy, max_concurrent_sessions: room }: ToolCandidate): number[] => {
      const calls = this.#towards.get(agentKeyOf({ tenant_id, instance_id })) ?? 0;
      return [Number(isLoop(chain, tool, instance_id)), Number(busy || (room > 0 && load >= room)), load + calls];
    };
    return candidates
      .map((candidate) => ({ candidate, rank: rank(candidate) }))
      .sort((one, other) => compare(one.rank, other.rank))
      .slice(0, TRIES_MAX)
      .map(({ candidate }) => candidate);
  }

  async #deliver(candidate: ToolCandidate, placed: PlacedCall, signal: AbortSignal): Promise<Outcome> {
    const { tenant_id, target } = placed;
    const agentKey = agentKeyOf({ tenant_id, instance_id: target.instance_id });
    this.#towards.set(agentKey, (this.#towards.get(agentKey) ?? 0) + 1);
    try {
      if (candidate.deployment_mode === 'hosted') return await this.#toHosted(agentKey, placed, signal);
      return candidate.mesh_id === null ? NOBODY : await this.#options.link.call(candidate.mesh_id, placed, signal);
    } finally {
      const left = (this.#towards.get(agentKey) ?? 1) - 1;
      if (left > 0) this.#towards.set(agentKey, left);
      else this.#towards.delete(agentKey);
    }
  }

  async #toHosted(agentKey: string, placed: PlacedCall, signal: AbortSignal): Promise<Outcome> {
    if (this.pending.countOf(agentKey) >= LIMITS.pendingToolCallsPerAgent) return busy();
    const hand = this.pending.hold(placed);
    try {
      const outcome = await this.#options.hosted(placed, signal);
      hand.settle(outcome);
      return outcome;
    } catch (error) {
      hand.settle({ sent: true, result: resultOfThrown(error) });
      throw error;
    }
  }
}

/** An agent that has as many calls in hand as it may. */
export function busy(): Outcome {
  return unsent('AGENT_BUSY', 'The agent has too much in hand. Call again later.');
}

function endOf({ payload, work }: ToolRequest): number {
  const nowMs = performance.now();
  const askedMs = payload.deadline_ms ?? (work ? LIMITS.deadlineMsMax : LIMITS.toolDeadlineMsDefault);
  return Math.min(nowMs + askedMs, work?.endsAtMs ?? Number.POSITIVE_INFINITY);
}

function place(request: ToolRequest, candidate: ToolCandidate, chain: Chain, endsAtMs: number): PlacedCall {
  const { caller, payload, work } = request;
  const call_id = newId('call');
  const { instance_id, agent_type, deployment_mode } = candidate;
  const session_id = work?.session_id ?? payload.session_id ?? undefined;
  const { trace_id } = traceFrom(request.traceparent ?? work?.traceparent);
  return {
    call_id,
    tenant_id: caller.tenant_id,
    target: { instance_id, agent_type, deployment_mode },
    tool: payload.tool,
    arguments: payload.arguments,
    caller: {
      agent_type: caller.agent_type,
      ...(caller.instance_id !== undefined && { instance_id: caller.instance_id }),
    },
    ...(session_id !== undefined && { session_id }),
    deadline_ms: Math.max(1, Math.round(endsAtMs - performance.now())),
    idempotency_key: payload.idempotency_key ?? call_id,
    chain: [...chain, { instance_id, tool: payload.tool }],
    traceparent: traceparentOf(trace_id, uuidOf(call_id)),
  };
}

function hasTarget({ target }: ToolCallPayload): boolean {
  return (target?.instance_id ?? target?.agent_type ?? target?.skill_id) !== undefined;
}

function whyNone(payload: ToolCallPayload, targets: ToolTargets): Outcome {
  if (!targets.session_known) return unsent('NOT_FOUND', 'There is no session of that session_id.');
  if (hasTarget(payload) && targets.fitting === 0) {
    return unsent('TARGET_UNAVAILABLE', 'No registered agent fits the target.');
  }
  if (targets.offering === 0) return unsent('TOOL_NOT_FOUND', 'No agent that fits lists this tool.');
  return unsent('TARGET_UNAVAILABLE', 'No agent that lists this tool is available now.');
}

function compare(one: number[], other: number[]): number {
  for (const [index, value] of one.entries()) {
    const difference = value - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
