import type { MessageState } from '../../contracts/messages.js';
import type { Db, Tx } from '../../db/pool.js';
import { type Statement, timeOf } from '../../db/statement.js';
import { newId } from '../../runtime/ids.js';
import type { MessageRef } from '../core.js';
import type { MessageRow } from '../read/rows.js';

/** Writes what belongs to a message in the transaction that accepts it. @param state with which the message was written */
export type AcceptHook = (tx: Tx, message: MessageRef, state: MessageState) => Promise<void>;

/** What T1 is given of a message that is not on the record yet. */
export type NewMessage = Pick<
  MessageRow,
  | 'tenant_id'
  | 'message_id'
  | 'session_id'
  | 'credential_id'
  | 'sender_agent_type'
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
  /** Writes who is told of its changes. */
  push?: AcceptHook;
};

/** A dispatch that T1 may open: its id, and the node that would send it. */
export interface Offer {
  dispatch_id: string;
  mesh_id: string;
}

/** What T1 counts of a tenant's messages. */
export interface CountTo {
  /** The bound of those in flight; 0 when they need not be counted. */
  in_flight: number;
  /** The bound of those that wait for input; 0 when they need not be counted. */
  waiting: number;
  /** So many wait, as is known, that none is accepted. */
  too_many_wait: boolean;
}

/** What T1 found: see `accept_message` in the migrations. */
export interface AcceptRow {
  verdict:
    | 'dispatched'
    | 'accepted'
    | 'unavailable'
    | 'repeat'
    | 'mismatch'
    | 'full'
    | 'full_waiting'
    | 'no_session'
    | 'session_closed'
    | 'target_required'
    | 'target_unknown';
  its_message: string;
  its_session: string;
  /** This and what follows is set for `dispatched` only, but for the counts, and the type of `target_unknown`. */
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
  /** Those that wait for input, likewise. */
  waiting: number | null;
}

const ACCEPT: Statement<AcceptRow> = {
  name: 'accept_messages',
  text: `SELECT verdict, its_message, its_session, at, its_instance, its_type, its_mode, its_epoch, its_url, its_card, its_user, in_flight,
      waiting
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
    waiting = null,
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
    waiting: waiting === null ? null : Number(waiting),
  }),
};

/** A `message_call` of the migrations. */
function acceptCall(draft: NewMessage, countTo: CountTo, offer: Offer | null, unavailable: string | null): object {
  return {
    tenant_id: draft.tenant_id,
    message_id: draft.message_id,
    session_id: draft.session_id,
    context: draft.requested_context,
    credential: draft.credential_id,
    sender_type: draft.sender_agent_type,
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
    most: countTo.in_flight,
    most_waiting: countTo.waiting,
    too_many_wait: countTo.too_many_wait,
    unavailable,
    new_dispatch: offer?.dispatch_id,
    at_mesh: offer?.mesh_id,
    event_ids: [newId('evt'), newId('evt'), newId('evt'), newId('evt')],
  };
}

/** The state with which T1 has put a message on the record. */
const STATE_OF = { accepted: 'submitted', dispatched: 'working', unavailable: 'failed' } as const;

function isNew(row: AcceptRow): row is AcceptRow & { verdict: keyof typeof STATE_OF } {
  return row.verdict in STATE_OF;
}

/** T1 with the push-notification config that came with the message, in one transaction of several round trips. */
async function acceptWithPush(db: Db, draft: NewMessage, push: AcceptHook, call: object): Promise<AcceptRow> {
  return db.tenant(draft.tenant_id, async (tx) => {
    const values = [JSON.stringify([call]), true];
    const [row] = await tx.query<AcceptRow & Record<string, unknown>>(ACCEPT.text, values, ACCEPT.name);
    if (!row) throw new Error('accept_messages gave no row');
    if (!isNew(row)) return row;
    await push(tx, { tenant_id: draft.tenant_id, message_id: row.its_message }, STATE_OF[row.verdict]);
    return row;
  });
}

/**
 * T1: puts a message on the record and opens its dispatch where that is easy, in one round trip (architecture.md, decision 11).
 * @param offer null: the message is accepted only
 * @param unavailable the text with which the message fails if its target is not registered; null: the verdict then is `target_unknown`
 */
export async function acceptInOne(
  db: Db,
  draft: NewMessage,
  countTo: CountTo,
  offer: Offer | null,
  unavailable: string | null = null,
): Promise<AcceptRow> {
  const call = acceptCall(draft, countTo, offer, unavailable);
  if (draft.push) return acceptWithPush(db, draft, draft.push, call);
  return db.batch(ACCEPT, call);
}
