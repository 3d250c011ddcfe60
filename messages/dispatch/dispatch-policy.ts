import type { Tx } from '../../db/pool.js';
import { isUndecided } from '../../policy/verdict.js';
import { newEventId } from '../../runtime/ids.js';
import type { MessageCore } from '../core.js';
import { readable } from '../read/readable.js';
import type { DispatchDetails } from '../read/rows.js';
import { announceFailed, failMessage } from '../supervise/failed-step.js';
import { type GatedRow, type KnownVerdicts, PolicyGate, VerdictNeeded } from '../supervise/policy-step.js';
import type { Dispatches, OpenDispatch } from './dispatches.js';
import { openDispatchFrom } from './open-dispatch.js';

/** How long an evaluator's verdict is used, in milliseconds. Policies may change, and so may the facts that they look at. */
const VERDICT_HOLDS_MS = 60_000;

function knownTo({ verdicts }: GatedRow): KnownVerdicts {
  const fresh = Object.entries(verdicts).filter(([, { at_ms }]) => Date.now() - at_ms < VERDICT_HOLDS_MS);
  return new Map(fresh.map(([key, { verdict }]) => [key, verdict]));
}

/** Marks a dispatch as sent. @returns null when the agent has another connection by now */
async function markSent(tx: Tx, open: OpenDispatch): Promise<OpenDispatch | null> {
  const { tenant_id, message_id, dispatch_id, mesh_id, epoch } = open;
  const [row] = await tx.query<DispatchDetails>('SELECT * FROM send_dispatch($1, $2, $3, $4, $5, $6)', [
    tenant_id,
    message_id,
    dispatch_id,
    mesh_id,
    epoch,
    newEventId(),
  ]);
  return row ? openDispatchFrom(readable(row)) : null;
}

/** As `Dispatches.release`, within the transaction in which the policies decide. */
const release = (tx: Tx, { tenant_id, message_id, dispatch_id }: OpenDispatch, reason: string) =>
  tx.query('SELECT release_dispatch($1, $2, $3, $4, false, $5)', [
    tenant_id,
    message_id,
    dispatch_id,
    reason,
    newEventId(),
  ]);

/** What was decided about a dispatch. Empty: it is no longer its message's current one. */
interface Decided {
  sent?: OpenDispatch | null;
  failed?: { row: GatedRow; code: string };
  asked?: boolean;
  /** The agent has another connection by now, and its message is released. */
  isReplaced?: boolean;
}

async function applyPolicies(core: MessageCore, tx: Tx, open: OpenDispatch): Promise<Decided> {
  const { tenant_id, message_id, session_id, dispatch_id } = open;
  await tx.query('SELECT 1 FROM sessions WHERE tenant_id = $1 AND session_id = $2 FOR NO KEY UPDATE', [
    tenant_id,
    session_id,
  ]);
  const query =
    'SELECT * FROM running_messages WHERE tenant_id = $1 AND message_id = $2 AND current_dispatch_id = $3 FOR UPDATE';
  const [row] = await tx.query<GatedRow>(query, [tenant_id, message_id, dispatch_id]);
  if (!row) return {};
  const gate = new PolicyGate(core, tx, row, knownTo(row));
  const ruling = await gate.rulingOn(open);
  if (!ruling) {
    const sent = await markSent(tx, open);
    if (!sent) await release(tx, open, 'CONNECTION_REPLACED');
    return { sent, isReplaced: !sent };
  }
  await release(tx, open, 'POLICY');
  const stop = await gate.follow(ruling, open);
  if (stop.kind === 'asked') return { asked: true };
  await failMessage(tx, row, stop.error);
  return { failed: { row, code: stop.error.code } };
}

/** Releases the dispatch, so that its room is free for others, and asks the evaluator. Then the message joins its queue again, at its old place. */
async function evaluate(
  core: MessageCore,
  dispatches: Pick<Dispatches, 'release'>,
  open: OpenDispatch,
  { key, request }: VerdictNeeded,
): Promise<void> {
  const { tenant_id, message_id } = open;
  await dispatches.release(open, 'EVALUATOR', { restsFirst: true });
  const verdict = await core.policies.decide(tenant_id, request);
  if (isUndecided(verdict)) return; // the evaluators are busy: a sweeper puts the message into its queue again
  await core.db.tenant(tenant_id, (tx) =>
    tx.query('UPDATE running_messages SET verdicts = verdicts || $3::jsonb WHERE tenant_id = $1 AND message_id = $2', [
      tenant_id,
      message_id,
      JSON.stringify({ [key]: { verdict, at_ms: Date.now() } }),
    ]),
  );
  core.advance(open);
}

/**
 * Has policies decide about a dispatch that an agent has taken and that is on the record as open: it is marked as sent, or its message fails or
 * waits for a human.
 * @returns what is to be sent; null for nothing
 * @throws while the database is away: the dispatch is then open, and nothing of it was sent
 */
export async function decideDispatch(
  core: MessageCore,
  dispatches: Pick<Dispatches, 'release'>,
  open: OpenDispatch,
): Promise<OpenDispatch | null> {
  const { tenant_id, message_id } = open;
  try {
    const {
      sent = null,
      failed,
      asked,
      isReplaced,
    } = await core.db.tenant(tenant_id, (tx) => applyPolicies(core, tx, open));
    if (sent) core.bus.publish(tenant_id, message_id, { kind: 'changed', under_way: true });
    if (failed) announceFailed(core, failed.row, failed.code);
    if (asked) core.bus.publish(tenant_id, message_id, { kind: 'changed' });
    if (asked) core.workflowStarter.message(open);
    if (isReplaced) core.advance(open);
    if (!sent) core.nodes.fill(open, open.mesh_id);
    return sent;
  } catch (error) {
    if (!(error instanceof VerdictNeeded)) throw error;
    await evaluate(core, dispatches, open, error);
    return null;
  }
}
