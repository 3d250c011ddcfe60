import type { ToolResult } from '../contracts/api/tools.js';
import type { Db } from '../db/pool.js';
import { digestOf } from '../messages/digest.js';
import { toolArguments, toolResult } from '../policy/guards/content.js';
import type { TenantGuards } from '../policy/guards/guarded-content.js';
import { RepeatedCalls } from '../policy/guards/repeated-calls.js';
import type { CallBound, Decider, Policies, PolicyRequest, Verdict } from '../policy/policy-request.js';
import { countAllowedCall } from '../policy/policy-store.js';
import { type DecisionEvent, eventsOf, findingEvents } from '../policy/verdict.js';
import type { Chain, ToolRequest } from './call-context.js';
import type { TracedRequest } from './call-span.js';
import { type Outcome, refusal } from './tool-result.js';

/**
 * What policies are asked about a call. `agent` is the caller, as its connection, dispatch or token proves it. What only the call itself claims
 * about its caller counts as unknown.
 */
export function policyRequestOf({ caller, payload, parent }: ToolRequest): PolicyRequest {
  const { agent_type, token } = caller;
  const instance_id = caller.is_instance_claimed ? undefined : caller.instance_id;
  const skill_id = parent?.skill_id;
  const unknown = [
    ...(instance_id === undefined ? (['instance_id'] as const) : []),
    ...(skill_id === undefined ? (['skill_id'] as const) : []),
  ];
  const session_id = parent?.session_id ?? payload.session_id ?? undefined;
  return {
    scope: 'tool',
    action: 'call',
    tool: payload.tool,
    arguments: payload.arguments,
    agent: {
      agent_type,
      ...(instance_id !== undefined && { instance_id }),
      ...(skill_id && { skill_id }),
    },
    ...(unknown.length > 0 && { unknown }),
    ...(session_id !== undefined && { session: { session_id } }),
    ...(token && { token }),
  };
}

/** The policies and guards, as far as tool calls ask them. */
export type ToolPolicies = Pick<Policies, 'decide'> & TenantGuards;

function boundOf(verdict: Verdict): CallBound | undefined {
  return verdict.decision === 'allow' ? verdict.bound : undefined;
}

/** What policies and guards say about tool calls. */
export class ToolPolicy {
  readonly #db: Db;
  readonly #policies: ToolPolicies;
  readonly #repeated = new RepeatedCalls();

  constructor(db: Db, policies: ToolPolicies) {
    this.#db = db;
    this.#policies = policies;
  }

  /**
   * The verdict about a call, without a promise where no evaluator has to be asked and nothing is counted.
   * @param chain the calls that wait for this one
   */
  decide(request: ToolRequest, chain: Chain): Verdict | Promise<Verdict> {
    const { caller, payload, parent } = request;
    const { tool, arguments: given } = payload;
    const maker = parent?.dispatch?.dispatch_id ?? caller.key;
    // The digest costs more than all else here: only a bound of repeated calls asks for it.
    const repeats = (): number => this.#repeated.count(maker, digestOf({ tool, arguments: given }));
    const content = toolArguments(given, { hops: chain.length + 1, repeats });
    const decide = () => this.#policies.decide(caller.tenant_id, policyRequestOf(request), content);
    const verdict = decide();
    if (!(verdict instanceof Promise) && !boundOf(verdict)) return verdict;
    return this.#counted(caller.tenant_id, verdict, decide);
  }

  /** Counts a call that a policy with a bound allows. A policy whose bound is used up is no longer in force: the others decide. */
  async #counted(tenantId: string, first: Verdict | Promise<Verdict>, decide: () => Verdict | Promise<Verdict>) {
    for (let verdict = await first; ; verdict = await decide()) {
      const bound = boundOf(verdict);
      if (!bound || (await countAllowedCall(this.#db, tenantId, bound.policy_id))) return verdict;
      bound.isSpent = true;
    }
  }

  /** As `decide`, for a call that a person has approved since: it is not counted, neither as a repeat nor by the bound of a policy. */
  decideAgain(request: ToolRequest, chain: Chain): Verdict | Promise<Verdict> {
    const { caller, payload } = request;
    const content = toolArguments(payload.arguments, { hops: chain.length + 1 });
    return this.#policies.decide(caller.tenant_id, policyRequestOf(request), content);
  }

  /** The result as the caller may see it. It is withheld if a guard denies what it found, or would ask about it: it is too late to ask. */
  async inspect(request: TracedRequest, outcome: Outcome): Promise<Outcome> {
    if (!outcome.sent) return outcome;
    const guards = this.#policies.guardsOf(request.caller.tenant_id);
    const settings = guards instanceof Promise ? await guards : guards;
    if (!settings?.inspects('tool_result')) return outcome;
    const { result } = outcome;
    const findings = settings.inspect(toolResult(result.ok ? result.result : result.error));
    if (findings.length === 0) return outcome;
    await this.#record(request, findingEvents(findings, { action: 'call', tool: request.payload.tool }));
    const denial = findings.find(({ decision }) => decision !== 'allow');
    if (!denial) return outcome;
    return { sent: true, result: refusal('GUARD_DENIED', `The tool's result is withheld: ${denial.reason}`) };
  }

  /** Records a denial, the audit policies that applied and the guards that let something pass. Writes nothing about any other call. */
  record(request: TracedRequest, verdict: Verdict): Promise<void> {
    return this.#record(request, eventsOf(verdict, { action: 'call', tool: request.payload.tool }));
  }

  async #record({ caller, parent, span }: TracedRequest, events: DecisionEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { tenant_id } = caller;
    // A call without a parent span begins a trace of its own, which is not kept.
    const traceId = span.parent_span_id === null ? null : span.trace_id;
    const values = [tenant_id, parent?.session_id ?? '', span.message_id, traceId, JSON.stringify(events)];
    await this.#db.tenant(tenant_id, (tx) => tx.query('SELECT record_decision_events($1, $2, $3, $4, $5)', values));
  }
}

/** The result of a call that a policy or a guard denies. */
export function denialOf(by: Decider, message = by.reason, retryable = false): ToolResult {
  if (by.source === 'guard') return refusal('GUARD_DENIED', message, retryable);
  const code = 'POLICY_DENIED';
  return { ok: false, error: { code, message, retryable, ...(by.policy_id !== '' && { policy_id: by.policy_id }) } };
}
