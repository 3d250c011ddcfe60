import type { PolicyTrace, TestPolicyResponse } from '../contracts/api/policies/policies.js';
import { PlatformError } from '../runtime/errors.js';
import { type CompiledPolicy, compilePolicy, whyOver } from './compiled-policy.js';
import { decideBy, type EarlyVerdict } from './decision.js';
import { contentOf } from './guards/content.js';
import type { GuardedContent, GuardSettings, TenantGuards } from './guards/guarded-content.js';
import { allHold } from './matching/conditions.js';
import { Facts, type LaterFact } from './matching/facts.js';
import type { Policies, PolicyRequest, Verdict } from './policy-request.js';
import { PolicySet } from './policy-set.js';
import type { PolicyRow } from './policy-store.js';
import {
  type TenantPolicies,
  TenantPoliciesCache,
  type TenantPoliciesDeps,
  type Unconcerned,
} from './tenant-policies.js';
import { withFindings } from './verdict.js';

/** The verdict where no policy or guard has anything to say; shared. */
const ALLOWED: Verdict = { decision: 'allow', audits: [] };

const NONE = new PolicySet([]);

/** The verdict while the tenant's policies cannot be read. */
function unreadable(): Verdict {
  const reason = 'The policies of the tenant cannot be read at this moment.';
  return { decision: 'deny', by: { source: 'policy', policy_id: '', name: '', reason }, audits: [], retryable: true };
}

function denied(error: unknown): Verdict {
  const verdict = unreadable();
  if (verdict.decision === 'deny') verdict.by.reason = `The policies could not be evaluated: ${String(error)}`;
  return verdict;
}

/** Decides by the policies and guards of all tenants: one in each process. */
export class PolicyEngine implements Policies, TenantGuards {
  /** Tenants about whose messages nothing is to be decided. */
  readonly unconcerned: Unconcerned;
  readonly #cache: TenantPoliciesCache;
  readonly #deps: TenantPoliciesDeps;

  constructor(deps: TenantPoliciesDeps) {
    this.#deps = deps;
    this.#cache = new TenantPoliciesCache(deps);
    this.unconcerned = this.#cache.unconcerned;
  }

  /** Begins to look for changes that other processes make. */
  start(): void {
    this.#cache.start();
  }

  stop(): Promise<void> {
    return this.#cache.stop();
  }

  /** Whether nothing is to be decided about the tenant's messages at this moment; policies and guards may change while one is under way. */
  isUnconcerned(tenantId: string): boolean {
    const { tenants, confirmedUntilMs } = this.unconcerned;
    return tenants.has(tenantId) && performance.now() <= confirmedUntilMs;
  }

  /** To be called after a change of the tenant's policies or guards was committed. */
  changed(tenantId: string): void {
    this.#cache.forget(tenantId);
  }

  decide(tenantId: string, request: PolicyRequest, content?: GuardedContent): Verdict | Promise<Verdict> {
    const verdict = this.decideEarly(tenantId, request, [], content);
    return verdict as Verdict | Promise<Verdict>; // without facts that come later, no verdict is `later`
  }

  /**
   * As `decide`, before all is known about a request.
   * @param later what will be known, and is not in the request
   * @returns `later` where the verdict depends on that
   */
  decideEarly(
    tenantId: string,
    request: PolicyRequest,
    later: readonly LaterFact[],
    content?: GuardedContent,
  ): EarlyVerdict | Promise<EarlyVerdict> {
    const known = this.#cache.known(tenantId);
    if (known) return this.#decide(known, tenantId, request, later, content);
    return this.#cache
      .read(tenantId)
      .then((policies) => (policies ? this.#decide(policies, tenantId, request, later, content) : unreadable()));
  }

  needsWebhook(tenantId: string, request: PolicyRequest): boolean {
    const known = this.#cache.known(tenantId);
    if (!known) return true;
    const webhooks = known.byScope.get(request.scope)?.webhooks ?? [];
    if (webhooks.length === 0) return false;
    const facts = new Facts(tenantId, request);
    return webhooks.some((policy) => whyOver(policy) === undefined && allHold(policy.conditions, facts) !== false);
  }

  /** Whether the tenant has as many requests to its evaluators under way as it may: a decision that needs one would wait. */
  isBusy(tenantId: string): boolean {
    return this.#deps.webhooks.isBusy(tenantId);
  }

  /** Whether the tenant may have policies of one of the scopes, or guards of messages. That it has none costs next to nothing to find out. */
  concerns(tenantId: string, ...scopes: PolicyRequest['scope'][]): boolean {
    const known = this.#cache.known(tenantId);
    if (!known || scopes.some((scope) => known.byScope.has(scope))) return true;
    return scopes.includes('admission') && known.guards?.inspects('message') === true;
  }

  guardsOf(tenantId: string): GuardSettings | null | Promise<GuardSettings | null> {
    const known = this.#cache.known(tenantId);
    if (known) return known.guards;
    return this.#cache.read(tenantId).then((policies) => {
      if (policies) return policies.guards;
      throw new PlatformError('SERVICE_UNAVAILABLE', 'The guards of the tenant cannot be read at this moment.');
    });
  }

  /** A policy that is not stored, ready to decide. @throws PlatformError BAD_REQUEST for an expression that is not valid */
  compile(row: PolicyRow): CompiledPolicy {
    return compilePolicy(row, this.#deps);
  }

  /** Decides without consequences, by what is in force in this process. @returns null where the policies cannot be read */
  async test(tenantId: string, request: PolicyRequest): Promise<TestPolicyResponse | null> {
    const policies = (await this.#cache.read(tenantId)) ?? null;
    if (!policies) return null;
    const trace: PolicyTrace[] = [];
    const ofScope = policies.byScope.get(request.scope) ?? NONE;
    const verdict = await decideBy(ofScope, new Facts(tenantId, request), { dryRun: true, trace });
    const decided = trace.find(({ outcome }) => outcome === 'decided');
    const rest = ofScope.policies.slice(trace.length).map(({ policy_id, name, decision, priority }): PolicyTrace => {
      const explanation = `${decided?.name ?? 'An earlier policy'} had decided.`;
      return { policy_id, name, decision, priority, outcome: 'not_reached', explanation };
    });
    return {
      decision: verdict === 'later' ? 'deny' : verdict.decision,
      ...(decided && { policy_id: decided.policy_id }),
      matched: decided !== undefined,
      trace: [...trace, ...rest],
    };
  }

  #decide(
    { byScope, guards }: TenantPolicies,
    tenantId: string,
    request: PolicyRequest,
    later: readonly LaterFact[],
    content: GuardedContent | undefined,
  ): EarlyVerdict | Promise<EarlyVerdict> {
    const policies = byScope.get(request.scope);
    const inspected = guards && (content ?? contentOf(request));
    const findings = inspected && guards.inspects(inspected.stage) ? guards.inspect(inspected) : [];
    if (!policies) return findings.length === 0 ? ALLOWED : withFindings(ALLOWED, findings);
    try {
      const verdict = decideBy(policies, new Facts(tenantId, request, later));
      if (verdict instanceof Promise) return verdict.then((given) => withFindings(given, findings), denied);
      return withFindings(verdict, findings);
    } catch (error) {
      return denied(error);
    }
  }
}
