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

/** An action that no message waits for cannot wait for a human: what asks for approval refuses it. */
function refusal(verdict: Exclude<Verdict, { decision: 'allow' }>): PlatformError {
  const { by } = verdict;
  const who = by.source === 'policy' ? `The policy ${by.name}` : `The guard ${by.guard}`;
  const what = verdict.decision === 'deny' ? 'denies this' : 'wants an approval, for which this cannot wait';
  return new PlatformError('forbidden', `${who} ${what}: ${by.reason}`);
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
  const verdict = await policies.decide(tenantId, request);
  if (verdict.decision === 'allow') return eventsOf(verdict, request);
  if (isUndecided(verdict)) throw undecidedError(verdict);
  const { audits, by } = verdict;
  const events = eventsOf({ decision: 'deny', by, audits }, request);
  await db.tenant(tenantId, (tx) => recordDecision(tx, tenantId, request.session?.session_id ?? '', events));
  throw refusal(verdict);
}
