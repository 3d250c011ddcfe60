import type { Usage } from '../contracts/messages.js';
import type { Artifact } from '../contracts/parts.js';
import type { Db } from '../db/pool.js';
import { noteFirstState, putPushConfig } from '../db/push.js';
import { type Statement, timeOf } from '../db/statement.js';
import { newId } from '../runtime/ids.js';
import type { MessageRef, SessionRef } from './core.js';
import type { DispatchRef } from './dispatches.js';
import { type PreparedPush, pushConfigId } from './push-configs.js';
import type { MessageRow } from './rows.js';

/** What T1 is given of a message that is not on the record yet. */
export type NewMessage = Pick<
  MessageRow,
  | 'tenant_id'
  | 'message_id'
  | 'session_id'
  | 'credential_id'
  | 'requested_context'
  | 'client_message_id'
  | 'content_hash'
  | 'method'
  | 'parts'
  | 'metadata'
  | 'user_input'
  | 'want_instance_id'
  | 'want_agent_type'
  | 'want_skill_id'
  | 'trace_id'
  | 'parent_span_id'
  | 'baggage'
  | 'deadline_ms'
> & {
  /** Who opens the session where none is named, and after how long it idles out. */
  created_by: string;
  idle_timeout_seconds: number;
  /** Who is told of its changes. */
  push?: PreparedPush;
};

/** A dispatch that T1 may open: its id, and the node that would send it. */
export interface Offer {
  dispatch_id: string;
  mesh_id: string;
}

/** What T1 found: see `accept_message` in the migrations. */
export interface AcceptRow {
  verdict: 'dispatched' | 'accepted' | 'repeat' | 'mismatch' | 'full' | 'no_session' | 'session_closed';
  its_message: string;
  its_session: string;
  /** This and what follows, but for `in_flight`, is set for `dispatched` only. */
  at: Date;
  its_instance: string;
  its_type: string;
  its_mode: 'hosted' | 'connected';
  its_epoch: number;
  its_url: string | null;
  its_card: Record<string, unknown> | null;
  its_user: string | null;
  /** The tenant's messages in flight, where they were counted, whatever the verdict. */
  in_flight: number | null;
}

const ACCEPT: Statement<AcceptRow> = {
  name: 'accept_messages',
  text: `SELECT verdict, its_message, its_session, at, its_instance, its_type, its_mode, its_epoch, its_url, its_card, its_user, in_flight
    FROM accept_messages($1, $2)`,
  row: ([
    verdict,
    message,
    session,
    at,
    instance,
    type,
    mode,
    epoch,
    url = null,
    card,
    user = null,
    inFlight = null,
  ]) => ({
    verdict: verdict as AcceptRow['verdict'],
    its_message: message ?? '',
    its_session: session ?? '',
    at: timeOf(at),
    its_instance: instance ?? '',
    its_type: type ?? '',
    its_mode: mode as AcceptRow['its_mode'],
    its_epoch: Number(epoch),
    its_url: url,
    its_card: card ? JSON.parse(card) : null,
    its_user: user,
    in_flight: inFlight === null ? null : Number(inFlight),
  }),
};

/** A `message_call` of the migrations. */
function acceptCall(draft: NewMessage, most: number, offer: Offer | null): object {
  return {
    tenant_id: draft.tenant_id,
    message_id: draft.message_id,
    session_id: draft.session_id,
    context: draft.requested_context,
    credential: draft.credential_id,
    client_message: draft.client_message_id,
    hash: `\\x${draft.content_hash.toString('hex')}`,
    method: draft.method,
    parts: draft.parts,
    metadata: draft.metadata,
    user_input: draft.user_input,
    want_instance: draft.want_instance_id,
    want_type: draft.want_agent_type,
    want_skill: draft.want_skill_id,
    trace: draft.trace_id,
    parent_span: draft.parent_span_id,
    baggage: draft.baggage,
    deadline_ms: draft.deadline_ms,
    creator: draft.created_by,
    idle_seconds: draft.idle_timeout_seconds,
    most,
    new_dispatch: offer?.dispatch_id,
    at_mesh: offer?.mesh_id,
    event_ids: [newId('evt'), newId('evt'), newId('evt')],
  };
}

/** T1 with the push-notification config that came with the message, in one transaction of several round trips. */
async function acceptWithPush(db: Db, draft: NewMessage, push: PreparedPush, call: object): Promise<AcceptRow> {
  return db.tenant(draft.tenant_id, async (tx) => {
    const values = [JSON.stringify([call]), true];
    const [row] = await tx.query<AcceptRow & Record<string, unknown>>(ACCEPT.text, values, ACCEPT.name);
    if (!row) throw new Error('accept_messages gave no row');
    if (row.verdict !== 'accepted' && row.verdict !== 'dispatched') return row;
    const of = { tenant_id: draft.tenant_id, message_id: row.its_message };
    const config_id = pushConfigId(push.config_id, row.its_message);
    await putPushConfig(tx, of, { ...push, config_id });
    if (row.verdict === 'dispatched') await noteFirstState(tx, of, config_id, 'working');
    return row;
  });
}

/**
 * T1: puts a message on the record and opens its dispatch where that is easy, in one round trip (architecture.md, decision 11).
 * @param most the tenant's bound of messages in flight; 0 when it need not be looked at
 * @param offer null: the message is accepted only
 */
export async function acceptInOne(db: Db, draft: NewMessage, most: number, offer: Offer | null): Promise<AcceptRow> {
  const call = acceptCall(draft, most, offer);
  if (draft.push) return acceptWithPush(db, draft, draft.push, call);
  return db.gather(ACCEPT, call);
}

/** How a dispatch ends its message. `output` is absent where the agent brought none. */
export interface Ending {
  state: 'completed' | 'failed';
  error: { code: string; message: string } | null;
  output?: {
    artifacts: Artifact[];
    usage: Usage | null;
    assistant_output: string;
    status_message: MessageRow['status_message'];
  };
}

/** What an ended message's row says differently from before. */
export type MessageEnd = Pick<MessageRow, 'state' | 'error_code' | 'error_message' | 'updated_at' | 'completed_at'> &
  Partial<NonNullable<Ending['output']>>;

/** Whose end it was. */
interface Served {
  session_id: string;
  instance_id: string;
  agent_type: string;
}

interface EndRow extends Served {
  ended_at: Date | null;
  called: (MessageRef & SessionRef)[] | null;
}

const END: Statement<EndRow> = {
  name: 'end_dispatches',
  text: 'SELECT ended_at, called, session_id, instance_id, agent_type FROM end_dispatches($1, $2)',
  row: ([endedAt, called, session, instance, type]) => ({
    ended_at: endedAt ? timeOf(endedAt) : null,
    called: called ? JSON.parse(called) : null,
    session_id: session ?? '',
    instance_id: instance ?? '',
    agent_type: type ?? '',
  }),
};

/** What `end_dispatch` raises to undo itself: the dispatch is not open, or of another epoch. */
const NOT_OPEN = 'FL001';

async function callEnd(db: Db, call: object): Promise<EndRow | undefined> {
  try {
    return await db.gather(END, call);
  } catch (error) {
    if ((error as { code?: unknown }).code === NOT_OPEN) return undefined;
    throw error;
  }
}

/**
 * T2: takes the end of a dispatch and ends its message with it, in one round trip.
 * @param epoch of the connection that brought it; null where that does not matter
 * @returns null when the dispatch was not open, not the message's current one, or of another epoch; nothing was written then
 */
export async function endInOne(
  db: Db,
  ref: DispatchRef,
  epoch: number | null,
  ending: Ending,
): Promise<{ end: MessageEnd; called: (MessageRef & SessionRef)[]; served: Served } | null> {
  const { state, error, output } = ending;
  const row = await callEnd(db, {
    tenant_id: ref.tenant_id,
    message_id: ref.message_id,
    dispatch_id: ref.dispatch_id,
    epoch,
    outcome: state,
    error: error?.code,
    error_said: error?.message,
    produced: output?.artifacts,
    used: output?.usage,
    output: output?.assistant_output,
    status: output?.status_message,
    event_ids: [newId('evt'), newId('evt')],
  });
  if (!row?.ended_at) return null;
  const { ended_at: at, called, session_id, instance_id, agent_type } = row;
  const facts = { state, error_code: error?.code ?? null, error_message: error?.message ?? null };
  return {
    end: { ...facts, ...output, updated_at: at, completed_at: at },
    called: called ?? [],
    served: { session_id, instance_id, agent_type },
  };
}
