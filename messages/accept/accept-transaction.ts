import type { MessageState } from '../../contracts/messages.js';
import type { Db, Tx } from '../../db/pool.js';
import { type Statement, timeOf } from '../../db/statement.js';
import { newId } from '../../runtime/ids.js';
import type { MessageRef } from '../core.js';
import type { MessageRow, RunningRow } from '../read/rows.js';

/** Writes what belongs to a message in the transaction that accepts it. @param state with which the message was written */
export type AcceptHook = (tx: Tx, message: MessageRef, state: MessageState) => Promise<void>;

/** What the accept transaction is given of a message: an `accept_call` (db/functions/accept_messages.sql) but for bounds and dispatch. */
export type NewMessage = Pick<
  MessageRow,
  | 'tenant_id'
  | 'message_id'
  | 'session_id'
  | 'credential_id'
  | 'sender_agent_type'
  | 'client_message_id'
  | 'method'
  | 'parts'
  | 'metadata'
  | 'want_agent_type'
  | 'trace_id'
  | 'parent_span_id'
  | 'baggage'
  | 'deadline_ms'
> &
  Pick<RunningRow, 'want_instance_id' | 'want_skill_id'> & {
    /** The contextId that the caller sent, '' for none. */
    requested_context: string;
    content_hash: Buffer;
    /** Who opens the session where none is named, and after how long it idles out. */
    created_by: string;
    idle_timeout_seconds: number;
    /** Writes the push-notification config that came with the message. */
    push?: AcceptHook;
  };

/** A dispatch that the accept transaction may open: its id, and the node that would send it. */
export interface Offer {
  dispatch_id: string;
  mesh_id: string;
}

/** How far the accept transaction counts a tenant's messages. */
export interface CountLimits {
  /** Bound of those in flight; 0 when they need not be counted. */
  in_flight_limit: number;
  /** Bound of those that wait for input; 0 when they need not be counted. */
  waiting_limit: number;
  /** That bound is known to be reached: nothing is accepted. */
  waiting_full: boolean;
}

/** No counting. */
export const UNCOUNTED: CountLimits = { in_flight_limit: 0, waiting_limit: 0, waiting_full: false };

/** An `accept_result` (db/functions/accept_messages.sql). */
export interface AcceptRow {
  verdict:
    | 'dispatched'
    | 'accepted'
    | 'unavailable'
    | 'repeat'
    | 'mismatch'
    | 'full'
    | 'waiting_full'
    | 'no_session'
    | 'session_closed'
    | 'target_required'
    | 'target_unknown';
  message_id: string;
  session_id: string;
  /** This and what follows is set for `dispatched` only, but for the counts, and the type of `target_unknown`. */
  accepted_at: Date;
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  connection_epoch: number;
  public_url: string | null;
  agent_card: Record<string, unknown> | null;
  user_id: string | null;
  /** The tenant's messages in flight, where they were counted, whatever the verdict. */
  in_flight: number | null;
  /** Those that wait for input, likewise. */
  waiting: number | null;
}

const ACCEPT: Statement<AcceptRow> = {
  name: 'accept_messages',
  text: `SELECT verdict, message_id, session_id, accepted_at, instance_id, agent_type, deployment_mode, connection_epoch, public_url,
      agent_card, user_id, in_flight, waiting FROM accept_messages($1, $2)`,
  row: ([verdict, message, session, at, instance, type, mode, epoch, url, card, user, inFlight, waiting]) => ({
    verdict: verdict as AcceptRow['verdict'],
    message_id: message ?? '',
    session_id: session ?? '',
    accepted_at: timeOf(at),
    instance_id: instance ?? '',
    agent_type: type ?? '',
    deployment_mode: mode as AcceptRow['deployment_mode'],
    connection_epoch: Number(epoch),
    public_url: url ?? null,
    agent_card: card ? JSON.parse(card) : null,
    user_id: user ?? null,
    in_flight: inFlight ? Number(inFlight) : null,
    waiting: waiting ? Number(waiting) : null,
  }),
};

/** The state with which a message is put on the record. */
const STATE_OF = { accepted: 'submitted', dispatched: 'working', unavailable: 'failed' } as const;

function isNew(row: AcceptRow): row is AcceptRow & { verdict: keyof typeof STATE_OF } {
  return row.verdict in STATE_OF;
}

/** The accept transaction with the push-notification config that came with the message: several round trips. */
async function acceptWithPush(db: Db, message: NewMessage, push: AcceptHook, call: object): Promise<AcceptRow> {
  return db.tenant(message.tenant_id, async (tx) => {
    const values = [JSON.stringify([call]), true];
    const [row] = await tx.query<AcceptRow & Record<string, unknown>>(ACCEPT.text, values, ACCEPT.name);
    if (!row) throw new Error('accept_messages gave no row');
    if (!isNew(row)) return row;
    await push(tx, { tenant_id: message.tenant_id, message_id: row.message_id }, STATE_OF[row.verdict]);
    return row;
  });
}

/** How a message is accepted. `offer` null: it takes the workflow path. */
interface AcceptOptions {
  limits: CountLimits;
  offer: Offer | null;
  idempotencyHours: number;
  /** Error with which the message fails if its target is not registered; absent: the verdict then is `target_unknown`. */
  unavailableText?: string;
}

/** The `accept_call`. Written out: copying so many members costs ten times as much. */
function acceptCall(message: NewMessage, { limits, offer, idempotencyHours, unavailableText }: AcceptOptions): object {
  return {
    tenant_id: message.tenant_id,
    message_id: message.message_id,
    session_id: message.session_id,
    requested_context: message.requested_context,
    credential_id: message.credential_id,
    sender_agent_type: message.sender_agent_type,
    client_message_id: message.client_message_id,
    content_hash: `\\x${message.content_hash.toString('hex')}`,
    method: message.method,
    parts: message.parts,
    metadata: message.metadata,
    want_instance_id: message.want_instance_id,
    want_agent_type: message.want_agent_type,
    want_skill_id: message.want_skill_id,
    trace_id: message.trace_id,
    parent_span_id: message.parent_span_id,
    baggage: message.baggage,
    deadline_ms: message.deadline_ms,
    created_by: message.created_by,
    idle_timeout_seconds: message.idle_timeout_seconds,
    idempotency_hours: idempotencyHours,
    in_flight_limit: limits.in_flight_limit,
    waiting_limit: limits.waiting_limit,
    waiting_full: limits.waiting_full,
    unavailable_text: unavailableText,
    dispatch_id: offer?.dispatch_id,
    mesh_id: offer?.mesh_id,
    event_ids: [newId('evt'), newId('evt'), newId('evt'), newId('evt')],
  };
}

/**
 * The accept transaction: puts a message on the record and opens its dispatch where the fast path may, in one round trip. */
export async function acceptInOne(db: Db, message: NewMessage, options: AcceptOptions): Promise<AcceptRow> {
  const call = acceptCall(message, options);
  return message.push ? acceptWithPush(db, message, message.push, call) : db.batch(ACCEPT, call);
}
