import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { PolicyScope, PolicyTrace, TestPolicyResponse } from '../contracts/api/policies/policies.js';
import type { Db, Tx } from '../db/pool.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { settledWithin } from '../runtime/promises/settled-within.js';
import { ChangeFeed } from './change-feed.js';
import { type CompileDeps, type CompiledPolicy, compilePolicy, policyOrder, whyOver } from './compiled-policy.js';
import { decideBy, type EarlyVerdict } from './decision.js';
import { contentOf } from './guards/content.js';
import type { GuardedContent, GuardSettings, TenantGuards } from './guards/guarded-content.js';
import { allHold } from './matching/conditions.js';
import { Facts, type LaterFact } from './matching/facts.js';
import type { Policies, PolicyRequest, Verdict } from './policy-request.js';
import { PolicySet } from './policy-set.js';
import { type PolicyRow, readPolicies, readRevision } from './policy-store.js';
import { withFindings } from './verdict.js';

/** A node that could not confirm a tenant's revision for this long reads it again, or denies. */
const CONFIRMED_MAX_MS = 5_000;
/** Policies of all tenants that are kept compiled; a tenant without any counts as one. */
const POLICIES_KEPT = 100_000;

/**
 * Compiling runs in pieces of this length, in turns of the tenants, with pauses as long as the pieces: a tenant may have thousands of policies,
 * and change them often. So it takes half of the process at most, and a tenant with few policies waits for one piece of each other tenant.
 */
const COMPILING_MAX_MS = 5;

/** What a tenant's decisions are made by, compiled once for a revision. */
interface TenantPolicies {
  revision: number;
  /** The policies that are switched on, in the order in which they are looked at. Scopes without any are missing. */
  byScope: ReadonlyMap<PolicyScope, PolicySet>;
  /** Null: no guard looks at anything. */
  guards: GuardSettings | null;
  /** When the reading began, on `performance.now()`. */
  readAtMs: number;
  size: number;
}

/** What the policies of tenants are read with. */
interface TenantPoliciesDeps extends CompileDeps {
  db: Pick<Db, 'tenant' | 'systemCall'>;
  log: Logger;
  /** The guards of a tenant, in the transaction in which its policies are read. */
  readGuards: (tx: Tx, tenantId: string) => Promise<GuardSettings | null>;
}

function byScope(policies: CompiledPolicy[]): TenantPolicies['byScope'] {
  const found = new Map<PolicyScope, CompiledPolicy[]>();
  for (const policy of policies.sort(policyOrder)) {
    const ofScope = found.get(policy.scope);
    if (ofScope) ofScope.push(policy);
    else found.set(policy.scope, [policy]);
  }
  return new Map([...found].map(([scope, ofScope]) => [scope, new PolicySet(ofScope)]));
}

/** Tenants whose messages, and the sessions that these open, neither policies nor guards look at: a plain table, since every message looks into it. */
interface Unconcerned {
  tenants: Set<string>;
  /** Until when the table is confirmed, on `performance.now()`. */
  confirmedUntilMs: number;
}

function isUnconcerned({ guards, byScope }: TenantPolicies): boolean {
  const isGuarded = guards?.inspects('message') || guards?.inspects('output');
  return !isGuarded && !byScope.has('admission') && !byScope.has('dispatch') && !byScope.has('session');
}

/** The compiled policies of tenants: read on the first use, and again after a change. */
class TenantPoliciesCache {
  readonly unconcerned: Unconcerned = { tenants: new Set(), confirmedUntilMs: Number.NEGATIVE_INFINITY };
  readonly #deps: TenantPoliciesDeps;
  readonly #feed: ChangeFeed;
  readonly #kept = new LRUCache<string, TenantPolicies>({
    maxSize: POLICIES_KEPT,
    sizeCalculation: ({ size }) => size,
    dispose: (_policies, tenantId) => this.unconcerned.tenants.delete(tenantId),
  });
  readonly #compiling = pLimit(1);
  readonly #reading = new Map<string, Promise<TenantPolicies | null>>();

  constructor(deps: TenantPoliciesDeps) {
    this.#deps = deps;
    this.#feed = new ChangeFeed(deps.db, deps.log, (revisions) => {
      if (this.#feed.confirmedAtMs === Number.NEGATIVE_INFINITY) this.#forgetAll();
      for (const [tenantId, revision] of revisions) this.#changed(tenantId, revision);
      this.unconcerned.confirmedUntilMs = this.#feed.lookedAtMs + CONFIRMED_MAX_MS;
    });
  }

  start(): void {
    this.#feed.start();
  }

  stop(): Promise<void> {
    return this.#feed.stop();
  }

  /** What is in memory and confirmed; undefined where it has to be read. */
  known(tenantId: string): TenantPolicies | undefined {
    const kept = this.#kept.get(tenantId);
    if (!kept) return undefined;
    const confirmedAtMs = Math.max(kept.readAtMs, this.#feed.confirmedAtMs);
    return performance.now() - confirmedAtMs <= CONFIRMED_MAX_MS ? kept : undefined;
  }

  /** Reads a tenant's policies. Null where that cannot be done in time. Never rejects. */
  async read(tenantId: string): Promise<TenantPolicies | null> {
    const reading = this.#reading.get(tenantId) ?? this.#read(tenantId);
    this.#reading.set(tenantId, reading);
    return settledWithin(reading, CONFIRMED_MAX_MS);
  }

  /** A change was committed in this process: what follows is decided by it. */
  forget(tenantId: string): void {
    this.#kept.delete(tenantId);
    this.#reading.delete(tenantId);
  }

  /** Called at the first look, which tells no changes: what was read before it may be outdated. */
  #forgetAll(): void {
    this.#reading.clear();
    this.#kept.clear();
  }

  #changed(tenantId: string, revision: number): void {
    // What is being read may be older than the change.
    this.#reading.delete(tenantId);
    if (this.#kept.peek(tenantId)?.revision !== revision) this.#kept.delete(tenantId);
  }

  #keep(tenantId: string, policies: TenantPolicies): void {
    this.#kept.set(tenantId, policies); // which disposes of what was kept before
    if (isUnconcerned(policies)) this.unconcerned.tenants.add(tenantId);
  }

  #read(tenantId: string): Promise<TenantPolicies | null> {
    const reading = this.#compiled(tenantId).then(
      (policies) => {
        if (this.#reading.get(tenantId) === reading) this.#keep(tenantId, policies);
        return policies;
      },
      (error: unknown) => {
        this.#deps.log.warn({ err: errorMessage(error), tenant_id: tenantId }, 'policies cannot be read');
        return null;
      },
    );
    void reading.finally(() => {
      if (this.#reading.get(tenantId) === reading) this.#reading.delete(tenantId);
    });
    return reading;
  }

  async #compiled(tenantId: string): Promise<TenantPolicies> {
    const { db, readGuards } = this.#deps;
    const readAtMs = performance.now();
    const { revision, rows, guards } = await db.tenant(tenantId, async (tx) => ({
      // First: what is read after it may be newer, and is then read again.
      revision: await readRevision(tx, tenantId),
      rows: await readPolicies(tx, tenantId),
      guards: await readGuards(tx, tenantId),
    }));
    const policies = await this.#compileAll(rows.filter(({ enabled }) => enabled));
    return { revision, byScope: byScope(policies), guards, readAtMs, size: 1 + policies.length };
  }

  async #compileAll(rows: readonly PolicyRow[]): Promise<CompiledPolicy[]> {
    const policies: CompiledPolicy[] = [];
    const compilePiece = async (): Promise<void> => {
      const startedAtMs = performance.now();
      const tookMs = () => performance.now() - startedAtMs;
      for (const row of rows.slice(policies.length)) {
        if (tookMs() > COMPILING_MAX_MS) return delay(tookMs());
        policies.push(this.#compile(row));
      }
    };
    while (policies.length < rows.length) await this.#compiling(compilePiece);
    return policies;
  }

  /** One that cannot be compiled, because another release stored it, decides as one whose evaluator fails. */
  #compile(row: PolicyRow): CompiledPolicy {
    try {
      return compilePolicy(row, this.#deps);
    } catch (error) {
      const { tenant_id, policy_id } = row;
      this.#deps.log.error({ err: errorMessage(error), tenant_id, policy_id }, 'policy cannot be compiled');
      const broken = compilePolicy({ ...row, match: {}, evaluator: {} }, this.#deps);
      return { ...broken, evaluate: () => Promise.reject(error) };
    }
  }
}

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
