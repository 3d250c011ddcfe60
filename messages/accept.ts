import { type MessageSendParams, SendMetadata } from '../contracts/a2a.js';
import type { Caller } from '../contracts/auth.js';
import { LIMITS } from '../contracts/limits.js';
import { textOf } from '../contracts/parts.js';
import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { MessageCore } from './core.js';
import { fingerprint } from './fingerprint.js';
import { RpcError } from './rpc-error.js';
import { traceFrom } from './trace.js';

/** How the message came in. */
export interface AcceptContext {
  method: 'message/send' | 'message/stream';
  traceparent?: string;
  baggage?: string;
}

/** A message that is on the record. `duplicate`: it was already, and nothing was written. */
export interface Accepted {
  message_id: string;
  session_id: string;
  duplicate: boolean;
}

interface Draft {
  caller: Caller;
  params: MessageSendParams;
  context: AcceptContext;
  metadata: Record<string, unknown>;
  hash: Buffer;
  contextId: string;
}

function draftOf(caller: Caller, params: MessageSendParams, context: AcceptContext): Draft {
  const metadata = { ...params.message.metadata, ...params.metadata };
  const routing = SendMetadata.safeParse(metadata);
  if (!routing.success) {
    const issue = routing.error.issues[0];
    throw new RpcError(
      'INVALID_PARAMS',
      `metadata.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`,
    );
  }
  return {
    caller,
    params,
    context,
    metadata,
    hash: fingerprint({ parts: params.message.parts, metadata }),
    contextId: params.message.contextId ?? '',
  };
}

async function findRepeat(tx: Tx, draft: Draft): Promise<Accepted | null> {
  const [row] = await tx.query<{ message_id: string; session_id: string; content_hash: Buffer }>(
    `SELECT message_id, session_id, content_hash FROM messages
      WHERE tenant_id = $1 AND credential_id = $2 AND requested_context = $3 AND client_message_id = $4`,
    [draft.caller.tenant_id, draft.caller.credential_id, draft.contextId, draft.params.message.messageId],
  );
  if (!row) return null;
  if (!row.content_hash.equals(draft.hash)) {
    throw new RpcError('INVALID_PARAMS', 'This messageId was already sent with other content.', 'IDEMPOTENCY_MISMATCH');
  }
  return { message_id: row.message_id, session_id: row.session_id, duplicate: true };
}

async function checkRoom(tx: Tx, tenantId: string, most: number): Promise<void> {
  const [row] = await tx.query<{ count: number }>(
    `SELECT count(*) AS count FROM messages WHERE tenant_id = $1 AND state IN ('submitted', 'working', 'input-required')`,
    [tenantId],
  );
  if ((row?.count ?? 0) >= most) {
    throw new PlatformError(
      'RATE_LIMITED',
      `The tenant has ${most} messages in flight, which is its bound. Try again.`,
      {
        headers: { 'Retry-After': '1' },
      },
    );
  }
}

/** Holds the session open (`FOR SHARE`; closing locks it) until the message is on the record. */
async function joinSession(tx: Tx, draft: Draft): Promise<void> {
  const [session] = await tx.query<{ status: string }>(
    'SELECT status FROM sessions WHERE tenant_id = $1 AND session_id = $2 FOR SHARE',
    [draft.caller.tenant_id, draft.contextId],
  );
  if (!session) throw new RpcError('INVALID_PARAMS', 'There is no session of that contextId.', 'NOT_FOUND');
  if (session.status !== 'active')
    throw new RpcError('UNSUPPORTED_OPERATION', 'The session has ended.', 'SESSION_CLOSED');
}

async function openSession(tx: Tx, draft: Draft, sessionId: string, traceId: string): Promise<void> {
  const { caller } = draft;
  await tx.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, wake_requested_at)
     VALUES ($1, $2, false, 'active', $3, $4, now())`,
    [caller.tenant_id, sessionId, LIMITS.idleTimeoutSecondsDefault, caller.sub],
  );
  const at = { tenant_id: caller.tenant_id, session_id: sessionId, trace_id: traceId };
  await recordEvent(tx, at, 'session.created', {
    session_id: sessionId,
    tenant_id: caller.tenant_id,
    created_by: caller.sub,
  });
}

const INSERT_MESSAGE = `
  INSERT INTO messages (tenant_id, message_id, session_id, credential_id, requested_context, client_message_id, content_hash,
    state, method, parts, metadata, user_input, want_instance_id, want_agent_type, want_skill_id, trace_id, parent_span_id,
    baggage, deadline_ms, wake_requested_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, 'submitted', $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, now())
  ON CONFLICT (tenant_id, credential_id, requested_context, client_message_id) DO NOTHING
  RETURNING message_id`;

async function insertMessage(
  tx: Tx,
  draft: Draft,
  ids: { message_id: string; session_id: string },
  trace: ReturnType<typeof traceFrom>,
) {
  const { caller, params, context } = draft;
  const routing = SendMetadata.parse(draft.metadata);
  const inserted = await tx.query(INSERT_MESSAGE, [
    caller.tenant_id,
    ids.message_id,
    ids.session_id,
    caller.credential_id,
    draft.contextId,
    params.message.messageId,
    draft.hash,
    context.method,
    JSON.stringify(params.message.parts),
    JSON.stringify(draft.metadata),
    textOf(params.message.parts),
    routing.instance_id ?? null,
    routing.agent_type ?? null,
    routing.skill_id ?? null,
    trace.trace_id,
    trace.parent_span_id,
    context.baggage ?? null,
    routing.deadline_ms ?? LIMITS.deadlineMsDefault,
  ]);
  return inserted.length === 1;
}

/** The race of two first sends: the loser's transaction rolls back and reads the winner's row. */
class LostRace extends Error {}

/**
 * Puts a message on the record: row, session where none is named, and events in one transaction; then wakes its workflow. The workflow
 * of a session that was opened here starts a little later, by the sweeper: it has nothing to do before the session idles.
 * A repeat of the same messageId from the same credential in the same context gives the same message.
 * @throws RpcError INVALID_PARAMS (IDEMPOTENCY_MISMATCH, NOT_FOUND), UNSUPPORTED_OPERATION (SESSION_CLOSED)
 * @throws PlatformError RATE_LIMITED beyond the tenant's bound of messages in flight
 */
export async function acceptMessage(
  core: MessageCore,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<Accepted> {
  const draft = draftOf(caller, params, context);
  const trace = traceFrom(context.traceparent);
  const work = async (tx: Tx): Promise<Accepted> => {
    const repeat = await findRepeat(tx, draft);
    if (repeat) return repeat;
    await checkRoom(tx, caller.tenant_id, core.limits.tenantMaxInFlight);
    const ids = { message_id: newId('msg'), session_id: draft.contextId || newId('ses') };
    if (draft.contextId) await joinSession(tx, draft);
    else await openSession(tx, draft, ids.session_id, trace.trace_id);
    if (!(await insertMessage(tx, draft, ids, trace))) throw new LostRace();
    await recordEvent(
      tx,
      { tenant_id: caller.tenant_id, session_id: ids.session_id, trace_id: trace.trace_id },
      'message.received',
      {
        message_id: ids.message_id,
        session_id: ids.session_id,
        role: 'user',
      },
    );
    return { ...ids, duplicate: false };
  };
  const accepted = await core.db.tenant(caller.tenant_id, work).catch((error: unknown) => {
    if (error instanceof LostRace) return core.db.tenant(caller.tenant_id, work);
    throw error;
  });
  const { tenant_id } = caller;
  const ids = { message_id: accepted.message_id, session_id: accepted.session_id };
  if (!accepted.duplicate) core.waker.message({ tenant_id, ...ids });
  return accepted;
}
