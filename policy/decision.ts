import type { PolicyTrace } from '../contracts/api/policies/policies.js';
import { type Application, application, type CompiledPolicy, decisionOf, whyOver } from './compiled-policy.js';
import type { Candidates } from './indexing/candidates.js';
import { allHold, firstUnmet } from './matching/conditions.js';
import { Facts } from './matching/facts.js';
import type { AppliedPolicy, Verdict } from './policy-request.js';
import type { PolicySet } from './policy-set.js';

/** Webhooks of one decision are asked one after the other. Once they have taken this long together, the next has failed. */
const EVALUATION_MAX_MS = 8_000;
/** Characters of an explanation: a trace has one for each policy. */
const EXPLANATION_MAX = 1_024;
const OUT_OF_TIME: Application = { applies: true, failed: 'the evaluators took too long' };

/** `later`: it depends on what is not known yet. */
export type EarlyVerdict = Verdict | 'later';

/** How a decision is made. */
export interface DecisionOptions {
  /** For test_policy: evaluators are told that nothing follows. */
  dryRun?: boolean;
  /** Gets what became of each policy that was looked at. */
  trace?: PolicyTrace[];
}

/** One decision over the policies of a scope, in their order. */
class Decision {
  readonly #set: PolicySet;
  readonly #candidates: Candidates;
  readonly #audits: AppliedPolicy[] = [];
  readonly #startedAtMs = performance.now();
  /** An earlier policy that allows may apply, which the facts do not tell yet. */
  #mayBeAllowed = false;
  #explained: Facts | undefined;

  constructor(
    set: PolicySet,
    readonly facts: Facts,
    readonly options: DecisionOptions,
  ) {
    this.#set = set;
    this.#candidates = set.candidates(facts);
  }

  /** Looks at the policies from a place on. A promise only where an evaluator gives one. */
  from(start: number): EarlyVerdict | Promise<EarlyVerdict> {
    const { policies } = this.#set;
    for (let at = this.#next(start); at < policies.length; at = this.#next(at + 1)) {
      const policy = policies[at] as CompiledPolicy;
      const over = whyOver(policy);
      if (over !== undefined) {
        this.#note(policy, 'not_matched', over);
        continue;
      }
      const matches = this.#candidates.has(at) && allHold(policy.conditions, this.facts);
      if (matches === false) {
        if (this.options.trace) this.#note(policy, 'not_matched', this.#whyUnmet(policy));
        continue;
      }
      const found = this.#isOutOfTime(policy)
        ? OUT_OF_TIME
        : application(policy, matches, this.facts, this.options.dryRun === true);
      if (found instanceof Promise) return found.then((given) => this.#take(policy, given) ?? this.from(at + 1));
      const verdict = this.#take(policy, found);
      if (verdict) return verdict;
    }
    return { decision: 'allow', audits: this.#audits };
  }

  /** The next place to look at: every one if there is a trace, else the next candidate. */
  #next(place: number): number {
    return this.options.trace ? place : this.#candidates.next(place);
  }

  #isOutOfTime({ isWebhook }: CompiledPolicy): boolean {
    return isWebhook && performance.now() - this.#startedAtMs > EVALUATION_MAX_MS;
  }

  /** Uses facts with a budget of their own, so that explaining does not use up the budget of the decision. */
  #whyUnmet({ conditions }: CompiledPolicy): string {
    const { tenantId, request, later } = this.facts;
    this.#explained ??= new Facts(tenantId, request, later);
    const unmet = firstUnmet(conditions, this.#explained);
    return typeof unmet === 'object' ? unmet.explain(this.#explained) : 'Its conditions do not hold.';
  }

  /** The verdict if the policy decides. */
  #take(policy: CompiledPolicy, { applies, reason, failed, noRoom }: Application): EarlyVerdict | undefined {
    if (applies === false) {
      this.#note(policy, 'not_matched', 'The evaluator says that it does not apply.');
      return undefined;
    }
    if (applies === 'later') {
      if (policy.decision !== 'allow') return 'later';
      this.#mayBeAllowed = true;
      return undefined;
    }
    const why =
      failed === undefined ? (reason ?? policy.applied.reason) : `The evaluator of ${policy.name} failed: ${failed}.`;
    const applied = { ...policy.applied, reason: why };
    const decision = decisionOf(policy, { failed });
    if (decision === 'audit') {
      this.#audits.push(applied);
      this.#note(policy, 'audited', why);
      return undefined;
    }
    // An earlier policy may still allow, so this one cannot decide yet.
    if (this.#mayBeAllowed && decision !== 'allow') return 'later';
    this.#note(policy, 'decided', why);
    return this.#verdict(policy, decision, applied, noRoom);
  }

  #verdict(
    { terms, bound }: CompiledPolicy,
    decision: Verdict['decision'],
    applied: AppliedPolicy,
    retryable: true | undefined,
  ): Verdict {
    const audits = this.#audits;
    if (decision === 'allow') return { decision, audits, ...(bound && { bound }) };
    const by = { source: 'policy' as const, ...applied };
    if (decision === 'require_approval') return { decision, by, terms, audits };
    return { decision, by, audits, ...(retryable && { retryable }) };
  }

  #note(
    { policy_id, name, decision, priority }: CompiledPolicy,
    outcome: PolicyTrace['outcome'],
    explanation: string,
  ): void {
    const text = explanation.slice(0, EXPLANATION_MAX).toWellFormed();
    this.options.trace?.push({ policy_id, name, decision, priority, outcome, explanation: text });
  }
}

/**
 * Decides by policies in their order: the first that applies decides, audit policies before it only record, and if none decides the action is
 * allowed. Returns a promise only where an evaluator has to be waited for.
 */
export function decideBy(
  policies: PolicySet,
  facts: Facts,
  options: DecisionOptions = {},
): EarlyVerdict | Promise<EarlyVerdict> {
  return new Decision(policies, facts, options).from(0);
}
