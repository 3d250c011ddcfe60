import type { AgentWithRoom } from '../../agents/agent-row.js';
import { recordEvent } from '../../db/events.js';
import type { Tx } from '../../db/pool.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { DispatchRow } from '../read/rows.js';
import type { BusEvent } from '../stream/bus.js';
import { applyQuestion, endingOf, withUsableForm } from './apply-result.js';
import { openDispatchFrom } from './dispatch-payload.js';
import type { DispatchRef } from './dispatch-ref.js';
import type { AgentResult, Closed, Dispatches, LossCode, OpenDispatch, Produced } from './dispatches.js';
import { logEnd } from './end-log.js';
import { bounded, closeDispatch, eventPlace } from './finish.js';
import { type LockedDispatch, lockOpen, writeSent } from './open-dispatch.js';
import { type Ending, endInOne, type MessageEnd } from './transactions.js';
import { wakeQueued } from './wake-queued.js';

type StoreCore = Pick<MessageCore, 'db' | 'bus' | 'limits' | 'log' | 'workflowStarter'>;

/** Waiting messages that are called when an agent joins; each dispatch that ends calls one more. */
const WOKEN_FOR_AN_AGENT = 20;
/**
 * A mesh node that has not renewed for this long is dead, should no other node have said so before: those remove its row after 15 s, and
 * know a pause of the whole machine from a death (mesh/node.ts).
 */
const NODE_DEAD_MS = 60_000;
const NOT_CLOSED: Closed = { accepted: false, end: null };

async function find(core: StoreCore, ref: DispatchRef): Promise<OpenDispatch | null> {
  return core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    return open && openDispatchFrom(open.row, open.dispatch, open.around);
  });
}

async function markSent(
  core: StoreCore,
  ref: DispatchRef,
  owner: { mesh_id: string; epoch: number },
): Promise<OpenDispatch | null> {
  const sent = await core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    if (!open || open.dispatch.sent_at !== null || open.newestEpoch !== owner.epoch) return null;
    const dispatch = await writeSent(tx, open, owner);
    await recordEvent(tx, eventPlace(open.row), 'dispatch.sent', {
      dispatch_id: dispatch.dispatch_id,
      instance_id: dispatch.instance_id,
      skill_id: dispatch.skill_id,
      session_id: dispatch.session_id,
    });
    return openDispatchFrom(open.row, dispatch, open.around);
  });
  if (sent) core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed', under_way: true });
  return sent;
}

/** Ends a dispatch and its message in one round trip. */
async function end(core: StoreCore, ref: DispatchRef, epoch: number | null, ending: Ending): Promise<Closed> {
  const ended = await endInOne(core.db, ref, epoch, ending);
  if (!ended) return NOT_CLOSED;
  announce(core, ref, ended.called, { kind: 'changed' });
  logEnd(core.log, { ...ref, ...ended.served, state: ending.state, code: ending.error?.code });
  return { accepted: true, end: ended.end };
}

function announce(core: StoreCore, ref: DispatchRef, called: (MessageRef & SessionRef)[], event: BusEvent): void {
  for (const waiting of called) core.workflowStarter.message(waiting);
  core.bus.publish(ref.tenant_id, ref.message_id, event);
}

/** The agent asks a human: its dispatch ends, and the message waits. */
async function ask(core: StoreCore, ref: DispatchRef, epoch: number, outcome: AgentResult): Promise<Closed> {
  const called = await core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    if (!open || open.dispatch.epoch !== epoch) return null;
    await closeDispatch(tx, open.row, open.dispatch, 'input-required', null);
    await applyQuestion(tx, open.row, outcome, core.limits.inputExpiryMs);
    return wakeQueued(tx, ref.tenant_id, open.dispatch, 1);
  });
  if (!called) return NOT_CLOSED;
  announce(core, ref, called, { kind: 'changed', recorded: true });
  return { accepted: true, end: null };
}

function accept(
  core: StoreCore,
  ref: DispatchRef & { produced: Produced },
  epoch: number,
  given: AgentResult,
): Promise<Closed> {
  const outcome = withUsableForm(given);
  if (outcome.state === 'input-required') return ask(core, ref, epoch, outcome);
  return end(core, ref, epoch, endingOf(ref.produced, outcome));
}

function fail(
  core: StoreCore,
  ref: DispatchRef,
  error: { code: string; message: string },
  epoch?: number,
): Promise<Closed> {
  return end(core, ref, epoch ?? null, { state: 'failed', error: bounded(error) });
}

async function voidOpen(
  tx: Tx,
  { row, dispatch }: Pick<LockedDispatch, 'row' | 'dispatch'>,
  reason: string,
): Promise<void> {
  await tx.query(
    `UPDATE dispatches SET state = 'void', ended_at = now(), error_code = $3 WHERE tenant_id = $1 AND dispatch_id = $2`,
    [dispatch.tenant_id, dispatch.dispatch_id, reason],
  );
  await tx.query(
    `UPDATE messages SET current_dispatch_id = NULL, holds_slot = false, unrouted_since = coalesce(unrouted_since, now()),
       suspends_session = resolution IS NOT NULL, updated_at = now()
     WHERE tenant_id = $1 AND message_id = $2`,
    [row.tenant_id, row.message_id],
  );
  if (dispatch.sent_at !== null) {
    await recordEvent(tx, { ...eventPlace(row), severity: 'warning' }, 'dispatch.failed', {
      dispatch_id: dispatch.dispatch_id,
      instance_id: dispatch.instance_id,
      error: reason,
      duration_ms: 0,
    });
  }
}

async function release(
  core: StoreCore,
  ref: DispatchRef,
  reason: string,
  options: { nothingSent?: boolean } = {},
): Promise<boolean> {
  return core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    if (!open || (open.dispatch.sent_at !== null && !options.nothingSent)) return false;
    await voidOpen(tx, open, reason);
    return true;
  });
}

/** A node that renewed itself lately still has what it sent, whatever Temporal thinks of the activity: it is to be adopted. */
async function ownerLives(tx: Tx, dispatch: DispatchRow): Promise<boolean> {
  const fresh = await tx.query(
    `SELECT 1 FROM mesh_nodes WHERE mesh_id = $1 AND renewed_at > now() - $2 * interval '1 ms'`,
    [dispatch.mesh_id, NODE_DEAD_MS],
  );
  return fresh.length > 0;
}

async function failAsLost(
  core: StoreCore,
  ref: DispatchRef,
  code: LossCode,
  options: { unlessOwnerLives?: boolean } = {},
): Promise<MessageEnd | null> {
  const sent = await core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    if (!open) return false;
    if (open.dispatch.sent_at === null) {
      await voidOpen(tx, open, 'OWNER_LOST');
      return false;
    }
    return !(options.unlessOwnerLives && (await ownerLives(tx, open.dispatch)));
  });
  if (!sent) return null;
  const message =
    code === 'DEADLINE_EXCEEDED' ? 'The agent did not answer in time.' : 'The connection to the agent was lost.';
  return (await fail(core, ref, { code, message })).end;
}

async function closedAmong(core: StoreCore, refs: DispatchRef[]): Promise<{ dispatch_id: string; state: string }[]> {
  if (refs.length === 0) return [];
  return core.db.system((tx) =>
    tx.query<{ dispatch_id: string; state: string }>(
      `SELECT d.dispatch_id, d.state FROM unnest($1::text[], $2::text[]) AS ref (tenant_id, dispatch_id)
         JOIN dispatches d USING (tenant_id, dispatch_id) WHERE d.state <> 'open'`,
      [refs.map((ref) => ref.tenant_id), refs.map((ref) => ref.dispatch_id)],
    ),
  );
}

async function agentJoined(core: StoreCore, tenantId: string, agent: AgentWithRoom): Promise<void> {
  const called = await core.db.tenant(tenantId, (tx) => wakeQueued(tx, tenantId, agent, WOKEN_FOR_AN_AGENT));
  for (const waiting of called) core.workflowStarter.message(waiting);
}

/** The transactions of a dispatch's life on Postgres (architecture.md, decision 5). */
export function createDispatches(core: StoreCore): Dispatches {
  return {
    find: (ref) => find(core, ref),
    markSent: (ref, owner) => markSent(core, ref, owner),
    accept: (ref, epoch, outcome) => accept(core, ref, epoch, outcome),
    fail: (ref, error, epoch) => fail(core, ref, error, epoch),
    release: (ref, reason, options) => release(core, ref, reason, options),
    failAsLost: (ref, code, options) => failAsLost(core, ref, code, options),
    closedAmong: (refs) => closedAmong(core, refs),
    agentJoined: (tenantId, agent) => agentJoined(core, tenantId, agent),
  };
}
