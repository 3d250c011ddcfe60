import { isTerminal } from '../contracts/messages.js';
import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import type { MessageCore, MessageRef, SessionRef } from './core.js';
import { type DispatchSurroundings, openDispatchFrom } from './dispatch-payload.js';
import type { Closed, Dispatches, DispatchOutcome, DispatchRef, LossCode, OpenDispatch } from './dispatches.js';
import { closeDispatch, eventPlace, finishFailed } from './finish.js';
import { applyOutcome, withUsableForm } from './outcome-apply.js';
import { readMessage } from './read.js';
import type { DispatchRow, MessageRow } from './rows.js';
import { callWaiting, type RoomyAgent } from './waiting.js';

type StoreCore = Pick<MessageCore, 'db' | 'bus' | 'limits' | 'waker'>;

/** Waiting messages that are called when an agent joins; each dispatch that ends calls one more. */
const CALLED_FOR_AN_AGENT = 20;
/**
 * A mesh node that has not renewed for this long is dead, should no other node have said so before: those remove its row after 15 s, and
 * know a pause of the whole machine from a death (mesh/node.ts).
 */
const NODE_DEAD_MS = 60_000;
const NOT_CLOSED: Closed & { ending: Ending; called: (MessageRef & SessionRef)[] } = {
  accepted: false,
  ending: 'unchanged',
  called: [],
};

async function readDispatch(tx: Tx, ref: DispatchRef): Promise<DispatchRow | null> {
  const [row] = await tx.query<DispatchRow>(
    'SELECT * FROM dispatches WHERE tenant_id = $1 AND dispatch_id = $2 FOR UPDATE',
    [ref.tenant_id, ref.dispatch_id],
  );
  return row ?? null;
}

async function surroundings(tx: Tx, dispatch: DispatchRow): Promise<DispatchSurroundings> {
  const [row] = await tx.query<{
    user_id: string | null;
    public_url: string | null;
    agent_card: Record<string, unknown> | null;
  }>(
    `SELECT s.user_id, a.public_url, a.agent_card FROM sessions s
       LEFT JOIN agents a ON a.tenant_id = s.tenant_id AND a.instance_id = $3
      WHERE s.tenant_id = $1 AND s.session_id = $2`,
    [dispatch.tenant_id, dispatch.session_id, dispatch.instance_id],
  );
  return { user_id: row?.user_id ?? null, public_url: row?.public_url ?? null, agent_card: row?.agent_card ?? {} };
}

/** Message and dispatch, locked in that order, when the dispatch is open and the message's current one. */
async function lockOpen(tx: Tx, ref: DispatchRef): Promise<{ row: MessageRow; dispatch: DispatchRow } | null> {
  const found = await readMessage(tx, ref.tenant_id, ref.message_id, true);
  if (!found || isTerminal(found.row.state) || found.row.current_dispatch_id !== ref.dispatch_id) return null;
  const dispatch = await readDispatch(tx, ref);
  return dispatch?.state === 'open' ? { row: found.row, dispatch } : null;
}

async function find(core: StoreCore, ref: DispatchRef): Promise<OpenDispatch | null> {
  return core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    return open && openDispatchFrom(open.row, open.dispatch, await surroundings(tx, open.dispatch));
  });
}

async function ownsNewestConnection(tx: Tx, dispatch: DispatchRow, epoch: number): Promise<boolean> {
  const [agent] = await tx.query<{ connection_epoch: number }>(
    'SELECT connection_epoch FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [dispatch.tenant_id, dispatch.instance_id],
  );
  return agent?.connection_epoch === epoch;
}

async function markSent(
  core: StoreCore,
  ref: DispatchRef,
  owner: { mesh_id: string; epoch: number },
): Promise<OpenDispatch | null> {
  const sent = await core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    if (!open || open.dispatch.sent_at !== null) return null;
    if (!(await ownsNewestConnection(tx, open.dispatch, owner.epoch))) return null;
    const [dispatch] = await tx.query<DispatchRow>(
      `UPDATE dispatches SET sent_at = now(), deadline_at = now() + $3 * interval '1 ms', mesh_id = $4, epoch = $5
        WHERE tenant_id = $1 AND dispatch_id = $2 RETURNING *`,
      [ref.tenant_id, ref.dispatch_id, open.row.deadline_ms, owner.mesh_id, owner.epoch],
    );
    if (!dispatch) return null;
    await tx.query(
      `UPDATE messages SET state = 'working', started_at = coalesce(started_at, now()), updated_at = now()
        WHERE tenant_id = $1 AND message_id = $2`,
      [ref.tenant_id, ref.message_id],
    );
    await recordEvent(tx, eventPlace(open.row), 'dispatch.sent', {
      dispatch_id: dispatch.dispatch_id,
      instance_id: dispatch.instance_id,
      skill_id: dispatch.skill_id,
      session_id: dispatch.session_id,
    });
    return openDispatchFrom(open.row, dispatch, await surroundings(tx, dispatch));
  });
  if (sent) core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  return sent;
}

/** What the work of `close` came to; `ended` frees room on the agent. */
type Ending = 'ended' | 'taken back' | 'unchanged';

async function close(
  core: StoreCore,
  ref: DispatchRef,
  epoch: number | undefined,
  work: (tx: Tx, row: MessageRow, dispatch: DispatchRow) => Promise<Ending>,
): Promise<Closed & { ending: Ending }> {
  const closed = await core.db.tenant(ref.tenant_id, async (tx) => {
    const open = await lockOpen(tx, ref);
    if (!open || (epoch !== undefined && open.dispatch.epoch !== epoch)) return NOT_CLOSED;
    const ending = await work(tx, open.row, open.dispatch);
    if (ending !== 'ended') return { ...NOT_CLOSED, ending };
    const called = await callWaiting(tx, ref.tenant_id, open.dispatch, 1);
    return { accepted: true, ending, called };
  });
  for (const waiting of closed.called) core.waker.message(waiting);
  if (closed.ending === 'ended') core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  return closed;
}

function accept(core: StoreCore, ref: DispatchRef, epoch: number, given: DispatchOutcome): Promise<Closed> {
  const outcome = withUsableForm(given);
  const error = outcome.state === 'failed' ? (outcome.error?.code ?? 'HANDLER_ERROR') : null;
  return close(core, ref, epoch, async (tx, row, dispatch) => {
    await closeDispatch(tx, row, dispatch, outcome.state, error);
    await applyOutcome(tx, row, outcome, core.limits.inputExpiryMs);
    return 'ended';
  });
}

function fail(
  core: StoreCore,
  ref: DispatchRef,
  error: { code: string; message: string },
  epoch?: number,
): Promise<Closed> {
  return close(core, ref, epoch, async (tx, row, dispatch) => {
    await closeDispatch(tx, row, dispatch, 'failed', error.code);
    await finishFailed(tx, row, error);
    return 'ended';
  });
}

async function voidOpen(tx: Tx, row: MessageRow, dispatch: DispatchRow, reason: string): Promise<void> {
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

async function takeBack(
  core: StoreCore,
  ref: DispatchRef,
  reason: string,
  options: { neverOpened?: boolean } = {},
): Promise<boolean> {
  const { ending } = await close(core, ref, undefined, async (tx, row, dispatch) => {
    if (dispatch.sent_at !== null && !options.neverOpened) return 'unchanged';
    await voidOpen(tx, row, dispatch, reason);
    return 'taken back';
  });
  return ending === 'taken back';
}

/** A node that renewed itself lately still has what it sent, whatever Temporal thinks of the activity: it is to be adopted. */
async function ownerLives(tx: Tx, dispatch: DispatchRow): Promise<boolean> {
  const fresh = await tx.query(
    `SELECT 1 FROM mesh_nodes WHERE mesh_id = $1 AND renewed_at > now() - $2 * interval '1 ms'`,
    [dispatch.mesh_id, NODE_DEAD_MS],
  );
  return fresh.length > 0;
}

async function lose(
  core: StoreCore,
  ref: DispatchRef,
  code: LossCode,
  options: { unlessOwnerLives?: boolean } = {},
): Promise<void> {
  await close(core, ref, undefined, async (tx, row, dispatch) => {
    if (dispatch.sent_at === null) {
      await voidOpen(tx, row, dispatch, 'OWNER_LOST');
      return 'taken back';
    }
    if (options.unlessOwnerLives && (await ownerLives(tx, dispatch))) return 'unchanged';
    await closeDispatch(tx, row, dispatch, 'failed', code);
    const message =
      code === 'DEADLINE_EXCEEDED' ? 'The agent did not answer in time.' : 'The connection to the agent was lost.';
    await finishFailed(tx, row, { code, message });
    return 'ended';
  });
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

async function agentJoined(core: StoreCore, tenantId: string, agent: RoomyAgent): Promise<void> {
  const called = await core.db.tenant(tenantId, (tx) => callWaiting(tx, tenantId, agent, CALLED_FOR_AN_AGENT));
  for (const waiting of called) core.waker.message(waiting);
}

/** The transactions of a dispatch's life on Postgres (architecture.md, decision 5). */
export function createDispatches(core: StoreCore): Dispatches {
  return {
    find: (ref) => find(core, ref),
    markSent: (ref, owner) => markSent(core, ref, owner),
    accept: (ref, epoch, outcome) => accept(core, ref, epoch, outcome),
    fail: (ref, error, epoch) => fail(core, ref, error, epoch),
    takeBack: (ref, reason, options) => takeBack(core, ref, reason, options),
    lose: (ref, code, options) => lose(core, ref, code, options),
    closedAmong: (refs) => closedAmong(core, refs),
    agentJoined: (tenantId, agent) => agentJoined(core, tenantId, agent),
  };
}
