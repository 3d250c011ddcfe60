import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { PolicyEngine } from './policy-engine.js';
import type { PolicyRequest, Verdict } from './policy-request.js';
import { type DecisionEvent, eventsOf, isUndecided, undecidedError } from './verdict.js';

/** What deciding about an action that cannot wait takes. */
export interface EnforceDeps {
  db: Pick<Db, 'tenant'>;
  policies: PolicyEngine;
}

/** Writes the events of a decision, in the transaction of what follows from it. @param sessionId '' for none */
export async function recordDecision(
  tx: Tx,
  tenantId: string,
  sessionId: string,
  events: readonly DecisionEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await tx.query('SELECT record_decision_events($1, $2, NULL, NULL, $3)', [
    tenantId,
    sessionId,
    JSON.stringify(events),
  ]);
}

/** An action without a message cannot wait for a human: a policy that asks for approval refuses it. */
function refusalOf(verdict: Exclude<Verdict, { decision: 'allow' }>): PlatformError {
  const { by } = verdict;
  const who = by.source === 'policy' ? `The policy ${by.name}` : `The guard ${by.guard}`;
  const what = verdict.decision === 'deny' ? 'denies this' : 'wants an approval, for which this cannot wait';
  return new PlatformError('forbidden', `${who} ${what}: ${by.reason}`);
}

/** What a verdict means for an action that is done at once or refused. */
export interface Outcome {
  /** To be written with the action (`recordDecision`), or with its refusal. */
  events: DecisionEvent[];
  /** The error to refuse the action with; null if it may be done. */
  refusal: PlatformError | null;
}

/** @throws PlatformError SERVICE_UNAVAILABLE where the policies could not be read or evaluated */
export function outcomeOf(verdict: Verdict, request: PolicyRequest): Outcome {
  if (verdict.decision === 'allow') return { events: eventsOf(verdict, request), refusal: null };
  if (isUndecided(verdict)) throw undecidedError(verdict);
  const { audits, by } = verdict;
  return { events: eventsOf({ decision: 'deny', by, audits }, request), refusal: refusalOf(verdict) };
}

/**
 * Decides about an action that is done at once or refused: a registration, a session.
 * @returns events to be written with it (`recordDecision`)
 * @throws PlatformError forbidden, which is recorded; SERVICE_UNAVAILABLE while the policies cannot be read or evaluated
 */
export async function enforce(
  { db, policies }: EnforceDeps,
  tenantId: string,
  request: PolicyRequest,
): Promise<DecisionEvent[]> {
  const { events, refusal } = outcomeOf(await policies.decide(tenantId, request), request);
  if (!refusal) return events;
  await db.tenant(tenantId, (tx) => recordDecision(tx, tenantId, request.session?.session_id ?? '', events));
  throw refusal;
}
