import { setTimeout as delay } from 'node:timers/promises';
import type { BacktestRequest, BacktestResponse, BacktestSample } from '../contracts/api/policies/backtest.js';
import type { PolicyDecision } from '../contracts/api/policies/policies.js';
import { isTimedOut } from '../db/errors.js';
import { BY_INDEX, limitMs } from '../db/pages/page.js';
import type { Db } from '../db/pool.js';
import {
  type Application,
  application,
  type CompiledPolicy,
  checkBound,
  decisionOf,
} from '../policy/compiled-policy.js';
import { allHold } from '../policy/matching/conditions.js';
import { Facts } from '../policy/matching/facts.js';
import { REQUEST_FACTS } from '../policy/matching/request-facts.js';
import type { PolicyEngine } from '../policy/policy-engine.js';
import { PlatformError } from '../runtime/errors.js';
import { FairSemaphore } from '../runtime/fair-semaphore.js';
import { idBound } from '../runtime/ids.js';
import { type PastRequest, type PastRow, SOURCES } from './past-requests.js';

const PERIOD_MAX_MS = 30 * 86_400_000;
/** For a whole backtest. */
const TIME_MAX_MS = 5_000;
/** Actions that one transaction reads: of messages of the largest size 12 MB. */
const PART = 50;
/** A process evaluates for so long at once, and then leaves the same time to others. */
const EVALUATING_MAX_MS = 5;
/** Backtests that a process runs at once, of different tenants. */
const AT_ONCE_MAX = 2;
const SAMPLES_MAX = 20;
/** Of a sample's arguments, as JSON. */
const SHOWN_CHARS_MAX = 4_096;

const FACTS: readonly string[] = REQUEST_FACTS;

/** What backtests take. */
export interface BacktestDeps {
  db: Db;
  policies: Pick<PolicyEngine, 'compile'>;
}

/** Whether the policy applies, and what it decides then. Of an action that is not wholly on the record only what is there is compared. */
function outcomeOf(
  policy: CompiledPolicy,
  tenantId: string,
  { request, isStored }: PastRequest,
): PolicyDecision | 'unmatched' | 'unknown' {
  if (!isStored) {
    const facts = new Facts(tenantId, request, ['instance_id', 'skill_id']);
    const known = policy.conditions.filter(({ name }) => FACTS.includes(name));
    return allHold(known, facts) === false ? 'unmatched' : 'unknown';
  }
  const facts = new Facts(tenantId, request);
  if (allHold(policy.conditions, facts) === false) return 'unmatched';
  if (policy.evaluate && !request.token) return 'unknown';
  const applied = application(policy, true, facts, true) as Application; // no promise without a webhook
  return applied.applies === true ? decisionOf(policy, applied) : 'unmatched';
}

function sampleOf({ at, request, isStored: _, ...ids }: PastRequest, decision: PolicyDecision): BacktestSample {
  const { action, tool, agent, session, arguments: given = {} } = request;
  const { agent_type, instance_id } = agent ?? {};
  const { session_id } = session ?? {};
  return {
    ...{ at: at.toISOString(), action, decision, ...ids },
    ...(session_id !== undefined && { session_id }),
    ...(tool !== undefined && { tool }),
    ...(agent_type !== undefined && { agent_type }),
    ...(instance_id !== undefined && { instance_id }),
    ...(JSON.stringify(given).length <= SHOWN_CHARS_MAX && { arguments: given }),
  };
}

/** The counts of one backtest. */
class Findings {
  readonly #maxCalls: number;
  readonly #found: Omit<BacktestResponse, 'ok' | 'sampled' | 'over_max_calls'> = {
    ...{ examined: 0, matched: 0, unknown: 0, samples: [] },
    by_decision: { allow: 0, deny: 0, require_approval: 0, audit: 0 },
  };

  /** @param bound of the policy */
  constructor(bound: CompiledPolicy['bound']) {
    this.#maxCalls = bound?.max_calls ?? Number.POSITIVE_INFINITY;
  }

  get examined(): number {
    return this.#found.examined;
  }

  add(past: PastRequest, outcome: ReturnType<typeof outcomeOf>): void {
    const found = this.#found;
    found.examined += 1;
    if (outcome === 'unmatched') return;
    if (outcome === 'unknown') {
      found.unknown += 1;
      return;
    }
    found.matched += 1;
    found.by_decision[outcome] += 1;
    if (found.samples.length < SAMPLES_MAX) found.samples.push(sampleOf(past, outcome));
  }

  /** @param sampled not all of the period was examined */
  answer(sampled: boolean): BacktestResponse {
    const { by_decision, samples, ...found } = this.#found;
    const over = Math.max(0, by_decision.allow - this.#maxCalls);
    // The newest are the first here, and came last.
    let left = over;
    const marked = samples.map((sample) =>
      sample.decision === 'allow' && left-- > 0 ? { ...sample, over_max_calls: true as const } : sample,
    );
    const decided = { ...by_decision, allow: by_decision.allow - over };
    return { ok: true, ...found, by_decision: decided, over_max_calls: over, samples: marked, sampled };
  }
}

/** The period in milliseconds since 1970. @throws PlatformError BAD_REQUEST */
function periodOf({ from, to }: BacktestRequest): { fromMs: number; toMs: number } {
  const toMs = to === undefined ? Date.now() : Date.parse(to);
  const fromMs = from === undefined ? toMs - PERIOD_MAX_MS : Date.parse(from);
  if (fromMs >= toMs) throw new PlatformError('BAD_REQUEST', 'from: must be before to.');
  if (toMs - fromMs > PERIOD_MAX_MS) throw new PlatformError('BAD_REQUEST', 'from: must be at most 30 days before to.');
  return { fromMs, toMs };
}

/** @throws PlatformError BAD_REQUEST for a policy that cannot be compiled, or asks an evaluator outside */
function compiled({ policies }: BacktestDeps, tenant_id: string, { policy }: BacktestRequest): CompiledPolicy {
  const { evaluator } = policy;
  checkBound(policy);
  if ('type' in evaluator && evaluator.type === 'webhook')
    throw new PlatformError('BAD_REQUEST', 'policy.evaluator: a backtest asks no webhook. Leave it out, or use CEL.');
  const now = new Date();
  return policies.compile({
    ...{ ...policy, tenant_id, policy_id: '', evaluator_secret: null, end_at: null, calls_allowed: null },
    ...{ created_at: now, updated_at: now, updated_by: null },
  });
}

/**
 * Says what policies would have decided about what is on the record. Nothing follows from it. It reads in parts, each a short transaction that
 * cannot write; one runs for each tenant.
 * @param timeMaxMs for a whole backtest
 */
export function createBacktests(deps: BacktestDeps, timeMaxMs = TIME_MAX_MS) {
  const { db } = deps;
  const turns = new FairSemaphore({
    ...{ limit: AT_ONCE_MAX, perKey: 1, waitingMax: 1, waitMaxMs: TIME_MAX_MS },
    refusal: () =>
      new PlatformError('RATE_LIMITED', 'A backtest runs already: call again when it has answered.', {
        headers: { 'Retry-After': '5' },
      }),
  });

  /** Undefined where it takes too long. */
  async function read(tenantId: string, text: string, values: unknown[], ms: number): Promise<PastRow[] | undefined> {
    try {
      return await db.tenant(tenantId, async (tx) => {
        await tx.query(`SET TRANSACTION READ ONLY; ${BY_INDEX}; ${limitMs(db, ms)}`);
        return tx.query<PastRow>(text, [tenantId, ...values]);
      });
    } catch (error) {
      if (isTimedOut(error)) return undefined;
      throw error;
    }
  }

  async function examine(
    tenantId: string,
    policy: CompiledPolicy,
    request: BacktestRequest,
    period: { fromMs: number; toMs: number },
  ) {
    const endsAtMs = performance.now() + timeMaxMs;
    const { prefix, select, read: pastOf } = SOURCES[policy.scope];
    const [least, findings] = [idBound(prefix, period.fromMs), new Findings(policy.bound)];
    let bound = idBound(prefix, period.toMs);
    for (;;) {
      const leftMs = Math.ceil(endsAtMs - performance.now());
      const count = Math.min(PART, request.limit - findings.examined);
      const rows = leftMs > 0 ? await read(tenantId, select, [least, bound, count + 1], leftMs) : undefined;
      if (!rows) return findings.answer(true);
      let startedAtMs = performance.now();
      for (const row of rows.slice(0, count)) {
        const past = pastOf(row);
        findings.add(past, outcomeOf(policy, tenantId, past));
        bound = row.key;
        const tookMs = performance.now() - startedAtMs;
        if (tookMs <= EVALUATING_MAX_MS) continue;
        if (performance.now() > endsAtMs) return findings.answer(true);
        await delay(tookMs);
        startedAtMs = performance.now();
      }
      if (rows.length <= count) return findings.answer(false);
      if (findings.examined === request.limit) return findings.answer(true);
    }
  }

  /**
   * @throws PlatformError BAD_REQUEST for a policy that cannot be compiled or asks a webhook, and for a period that is too long; RATE_LIMITED
   *   while others run
   */
  return async (tenantId: string, request: BacktestRequest): Promise<BacktestResponse> => {
    const period = periodOf(request);
    const policy = compiled(deps, tenantId, request);
    return turns.run(tenantId, () => examine(tenantId, policy, request, period));
  };
}
