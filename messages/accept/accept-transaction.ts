import type { MessageState } from '../../contracts/api/messages.js';
import { WAIT_MAX_MS } from '../../db/connections/lock-waits.js';
import type { Statement, TenantCall } from '../../db/connections/statement.js';
import { LockHeldError, lockHeld } from '../../db/errors.js';
import type { Db, Tx } from '../../db/pool.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import { newEventId } from '../../runtime/ids.js';
import type { MessageRef } from '../core.js';
import type { inputRequestCall } from '../input/ask.js';
import type { MessageRow, RunningRow } from '../read/rows.js';

/** Runs in the accept transaction and writes rows that belong to the message. @param state the message's state in that transaction */
export type AcceptHook = (tx: Tx, message: MessageRef, state: MessageState) => Promise<void>;

/** What policies and guards have to say of a message, for the accept transaction: `decision` of an `accept_call`. */
export interface AcceptDecision {
  /** The message fails with this error. */
  error?: { code: string; message: string };
  /** The message waits for the answer to this request. */
  input_request?: ReturnType<typeof inputRequestCall>;
  /** Policies still have to decide about the message, before it joins a queue. */
  undecided?: true;
  events?: DecisionEvent[];
  /** Written only if the message is dispatched at once. */
  dispatch_events?: DecisionEvent[];
  /** Policies have to decide about the dispatch: the message joins a queue, and they decide when an agent takes it. */
  dispatch_undecided?: true;
}

/** The columns of a new message: an `accept_call` (db/functions/messages/accept_call.sql) without the limits and the dispatch. */
export type NewMessage = Pick<
  MessageRow,
  | 'tenant_id'
  | 'message_id'
  | 'session_id'
  | 'credential_id'
  | 'user_id'
  | 'sender_agent_type'
  | 'client_message_id'
  | 'method'
  | 'parts'
  | 'metadata'
  | 'want_agent_type'
  | 'trace_id'
  | 'parent_span_id'
  | 'propagation'
  | 'deadline_ms'
> &
  Pick<RunningRow, 'want_instance_id' | 'want_skill_id'> & {
    /** The contextId that the caller sent, '' for none. */
    requested_context: string;
    /** In hexadecimal. */
    content_hash: string;
    /** Where `user_id` comes from: the limits of the sender's token, or the record of the message that is sent again. Absent: the sender names it. */
    user_from?: 'token' | 'record';
    /** Both for the session that the message opens if it names none. */
    created_by: string;
    idle_timeout_seconds: number;
    /** Writes rows that belong to the message: its push-notification config, or that it is a plan's step or a retry. */
    hook?: AcceptHook;
    /** What policies and guards have to say; absent for most. */
    decision?: AcceptDecision;
    /**
     * What policies see of the sender's token, for decisions after this transaction. Absent where it has no limits and the tenant has no policies that look at
     * messages.
     */
    token?: NonNullable<PolicyRequest['token']>;
  };

/** What the process can do for a message that is accepted. */
export interface DispatchOffer {
  /** The dispatch that the accept transaction may open, and this process as the mesh node that sends it to an agent connected here, or hosted. */
  dispatch_id?: string;
  mesh_id?: string;
  /** Other nodes can be notified that a message waits for one of their agents. */
  reaches_nodes: boolean;
  /** Agents of the wanted type that may have nothing to do. */
  idle_ids?: string[];
}

/** The limits that the accept transaction checks by counting a tenant's messages. */
export interface CountLimits {
  /** How many of the tenant's messages agents may have; beyond that this one waits. 0: they are not counted. */
  in_flight_limit: number;
  /** How many messages may wait for agents. 0: they are not counted. */
  queued_limit: number;
  /** `queued_limit` is known to be reached: the message is refused. */
  queued_full: boolean;
  /** How many messages may wait for input. 0: they are not counted. */
  waiting_limit: number;
  /** `waiting_limit` is known to be reached: the message is refused. */
  waiting_full: boolean;
  /** The message is refused, unless it is a repeat: a quota is used up, or a policy forbids its session. */
  refused?: boolean;
}

export const UNCOUNTED: CountLimits = {
  in_flight_limit: 0,
  queued_limit: 0,
  queued_full: false,
  waiting_limit: 0,
  waiting_full: false,
};

/** An `accept_result` (db/functions/messages/accept_call.sql). */
export interface AcceptRow {
  verdict:
    | 'dispatched'
    | 'queued'
    | 'rests'
    | 'asked'
    | 'denied'
    | 'unavailable'
    | 'repeat'
    | 'mismatch'
    | 'refused'
    | 'queued_full'
    | 'waiting_full'
    | 'too_many_hops'
    | 'other_user'
    | 'no_session'
    | 'session_closed'
    | 'target_required'
    | 'target_unknown'
    | 'locked';
  /** The message's first state; null where nothing was written. */
  state: MessageState | null;
  /** Not there where nothing was written and the message is no repeat, as is `session_id`. */
  message_id: string;
  session_id: string;
  /** ISO 8601; not there where nothing was written. */
  accepted_at: string;
  /** The chosen agent; with `queued` one of another node that has room, null for none. */
  instance_id: string | null;
  /** With `target_unknown` the type that was looked up, null for none. */
  agent_type: string | null;
  deployment_mode: 'hosted' | 'connected' | null;
  connection_epoch: number | null;
  /** The node that sends to the agent of `instance_id`. */
  mesh_id: string | null;
  public_url: string | null;
  agent_card: Record<string, unknown> | null;
  /** In hexadecimal. */
  dispatch_auth: string | null;
  /** The user that the message is for. */
  user_id: string | null;
  /** The tenant's messages that agents have; null when they were not counted. */
  in_flight: number | null;
  /** The tenant's messages that wait for agents; null when they were not counted. */
  queued: number | null;
  /** The tenant's messages that wait for input; null when they were not counted. */
  waiting: number | null;
  /** With `locked` the lock that the call waits for: it is then repeated, so that no caller sees this verdict. */
  awaits: string | null;
  /** With `queued` the queue that it joined, unless it waits behind others (also where that was not looked up); else null. */
  new_queue: string | null;
}

/** The row of a message with the verdict `dispatched`. */
export type DispatchedRow = AcceptRow & {
  [Member in 'instance_id' | 'agent_type' | 'mesh_id' | 'deployment_mode' | 'connection_epoch']: NonNullable<
    AcceptRow[Member]
  >;
};

const ACCEPT: Statement<AcceptRow> = {
  name: 'accept_messages',
  text: 'SELECT row_to_json(r) FROM unnest(accept_messages($1, $2)) AS r',
  awaits: (row) => row.awaits,
};

/** The accept transaction of a message with a hook: several round trips, not batched. */
async function acceptWithHook(db: Db, draft: NewMessage, hook: AcceptHook, call: TenantCall): Promise<AcceptRow> {
  return db.tenant(draft.tenant_id, async (tx) => {
    const [row] = await tx.run(ACCEPT, [JSON.stringify([call]), 'true']);
    if (!row) throw new Error('accept_messages gave no row');
    const { state, message_id } = row;
    if (state !== null) await hook(tx, { tenant_id: draft.tenant_id, message_id }, state);
    return row;
  });
}

/** Repeats `acceptWithHook` while a lock is held, up to `WAIT_MAX_MS`. Each try waits for two seconds at most, so that others have their turns. */
async function acceptRepeatedly(db: Db, draft: NewMessage, hook: AcceptHook, call: TenantCall): Promise<AcceptRow> {
  const untilMs = performance.now() + WAIT_MAX_MS;
  for (;;) {
    try {
      const row = await acceptWithHook(db, draft, hook, call);
      if (row.verdict !== 'locked') return row;
      throw lockHeld();
    } catch (error) {
      if (!(error instanceof LockHeldError) || performance.now() >= untilMs) throw error;
    }
  }
}

interface AcceptOptions {
  counting: CountLimits;
  /** Null: no agent gets it at once. */
  offer: DispatchOffer | null;
  idempotencyHours: number;
  /** The error of the message if its target is not registered. Absent: nothing is written, and the verdict is `target_unknown`. */
  unavailableText?: string;
}

/** The `accept_call`. `...draft` comes last, because an object literal that begins with a large spread is slow. */
function acceptCall(draft: NewMessage, { counting, offer, ...options }: AcceptOptions): TenantCall {
  return {
    event_id: newEventId(),
    idempotency_hours: options.idempotencyHours,
    unavailable_text: options.unavailableText,
    dispatch_id: offer?.dispatch_id,
    mesh_id: offer?.mesh_id,
    reaches_nodes: offer?.reaches_nodes,
    idle_ids: offer?.idle_ids,
    ...counting,
    ...draft,
  };
}

/** The accept transaction: writes a message and, with an offer, opens its dispatch as sent. One round trip, shared with other messages. */
export async function runAcceptTransaction(db: Db, draft: NewMessage, options: AcceptOptions): Promise<AcceptRow> {
  const call = acceptCall(draft, options);
  return draft.hook ? acceptRepeatedly(db, draft, draft.hook, call) : db.batch(ACCEPT, call);
}
