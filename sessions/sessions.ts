import type { ChosenAgent } from '../agents/agent-row.js';
import type { Caller } from '../contracts/api/auth.js';
import type { SessionInitRequest, SessionInviteRequest } from '../contracts/api/sessions.js';
import { isLimited, type Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { recordDecision } from '../policy/enforce.js';
import { errorMessage, isTransient, PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import { inviteAgent } from './invite.js';
import { chooseAgent, choosing, joinSession } from './session-agents.js';
import type { SessionDeps } from './session-deps.js';
import { cancelLeft, endSession, lockOwnSession, recordLoad, requireActive } from './session-end.js';
import { decideSession } from './session-policy.js';
import { readDetails, readSession } from './session-records.js';

/** The request within the limits of a token: for its user, and of a type that it allows. @throws PlatformError forbidden for any other */
function withinLimits(caller: Caller, body: SessionInitRequest): SessionInitRequest {
  const { user_id, session_id, agent_types_allowed: types } = caller;
  if (!isLimited(caller)) return body;
  const refuse = (text: string) => new PlatformError('forbidden', text);
  if (session_id !== undefined) throw refuse('The token is limited to a session.');
  if (body.user_id !== undefined && body.user_id !== user_id)
    throw refuse('user_id: a token with limits opens sessions of its own user only.');
  if (body.reserve || body.idle_timeout_seconds === 0)
    throw refuse(
      'reserve, idle_timeout_seconds: a session of a token with limits holds no place, and ends when it is idle.',
    );
  const agent_type = body.agent_type ?? (types?.length === 1 ? types[0] : undefined);
  if (types && (agent_type === undefined || !types.includes(agent_type)))
    throw refuse(`agent_type: must be one of ${types.join(', ')}, to which the token is limited.`);
  return { ...body, ...(agent_type !== undefined && { agent_type }), ...(user_id !== undefined && { user_id }) };
}

async function insertSession(
  tx: Tx,
  { tenant_id, credential_id, sub: created_by }: Caller,
  { user_id, metadata = {}, ordered = false, reserve = false, idle_timeout_seconds }: SessionInitRequest,
  agent: ChosenAgent | null,
): Promise<string> {
  const session_id = newId('ses');
  const { agent_type, instance_id } = agent ?? { agent_type: null, instance_id: null };
  await tx.query(
    `INSERT INTO sessions (tenant_id, session_id, user_id, credential_id, explicit, agent_type, instance_id, status, metadata,
       idle_timeout_seconds, ordered, reserves, wake_requested_at)
     VALUES ($1, $2, $3, $4, true, $5, $6, 'active', $7, $8, $9, $10, now())`,
    [
      ...[tenant_id, session_id, user_id, credential_id, agent_type, instance_id, JSON.stringify(metadata)],
      ...[idle_timeout_seconds, ordered, reserve],
    ],
  );
  const session = { tenant_id, session_id };
  await recordEvent(tx, session, 'session.created', { ...session, created_by });
  if (agent) {
    await joinSession(tx, session, agent, 'init');
    if (reserve) await recordLoad(tx, tenant_id, agent.instance_id);
  }
  return session_id;
}

/** Opens a session. @throws PlatformError as `chooseAgent`; forbidden where a policy denies it */
async function initSession(deps: SessionDeps, caller: Caller, body: SessionInitRequest) {
  const { tenant_id } = caller;
  const decided = await decideSession(deps, caller, 'init', body);
  const opened = await choosing(deps.db, tenant_id, body, async (tx) => {
    const named = body.instance_id !== undefined || body.agent_type !== undefined;
    const agent = named ? await chooseAgent(tx, tenant_id, body, body.reserve === true) : null;
    const session = await readSession(tx, tenant_id, await insertSession(tx, caller, body, agent));
    await recordDecision(tx, tenant_id, session.session_id, decided);
    return { session, instance_id: agent?.instance_id ?? null, agent_type: agent?.agent_type ?? null };
  });
  deps.wakeSession({ tenant_id, session_id: opened.session.session_id });
  return opened;
}

/**
 * Cancels the messages in flight of a session. Messages that come meanwhile are accepted and stay.
 * @returns the session's status; undefined when there is no such session
 */
async function interruptSession({ db, messages }: SessionDeps, caller: Caller, sessionId: string) {
  const { tenant_id } = caller;
  const found = await db.tenant(tenant_id, async (tx) => {
    // The lock waits for messages that are being accepted; after it they are seen.
    const session = await lockOwnSession(tx, caller, sessionId);
    const [clock] = await tx.query<{ now: Date }>('SELECT clock_timestamp() AS now');
    return session && clock && { status: session.status, acceptedUntil: clock.now };
  });
  if (found?.status === 'active')
    await messages.cancelInFlight({ tenant_id, session_id: sessionId }, { reason: 'interrupted', ...found });
  return found?.status;
}

/** Logs that messages of an ended session could not be canceled yet. @throws any error that is not transient */
function leftBehind(log: SessionDeps['log'], session_id: string): (error: unknown) => void {
  return (error) => {
    if (!isTransient(error)) throw error;
    log.warn({ err: errorMessage(error), session_id }, 'messages of an ended session are canceled later');
  };
}

/** Creates the operations of the API on sessions. */
export function createSessions(deps: SessionDeps) {
  return {
    init: async (caller: Caller, body: SessionInitRequest) => initSession(deps, caller, withinLimits(caller, body)),
    invite: (caller: Caller, body: SessionInviteRequest) => inviteAgent(deps, caller, body),
    /** @throws PlatformError NOT_FOUND, SESSION_CLOSED */
    close: async (reader: Reader, session_id: string, reason = 'closed by the caller'): Promise<void> => {
      const { tenant_id } = reader;
      const { explicit, inFlight, freed } = await deps.db.tenant(tenant_id, async (tx) => {
        const session = await lockOwnSession(tx, reader, session_id);
        requireActive(session);
        return { explicit: session.explicit, ...(await endSession(tx, session, 'completed', reason)) };
      });
      if (freed) deps.messages.fill(freed);
      // The session has ended: what cannot be canceled now is left to the worker role, and the caller is not asked to close it again.
      if (inFlight) await cancelLeft(deps, { tenant_id, session_id }, reason).catch(leftBehind(deps.log, session_id));
      if (explicit) deps.wakeSession({ tenant_id, session_id });
    },
    /** Cancels the messages in flight; the sessions stay usable. Ended sessions are skipped. @throws PlatformError NOT_FOUND when none of the ids exists */
    interrupt: async (caller: Caller, ids: string[]) => {
      const statuses = new Map<string, string | undefined>();
      for (const id of new Set(ids)) statuses.set(id, await interruptSession(deps, caller, id));
      if (![...statuses.values()].some((status) => status !== undefined))
        throw new PlatformError('NOT_FOUND', 'There is no session of these ids.');
      const session_ids = [...statuses.keys()].filter((id) => statuses.get(id) === 'active');
      return { requested: statuses.size, interrupted: session_ids.length, session_ids };
    },
    get: (reader: Reader, sessionId: string) => readDetails(deps.db, reader, sessionId),
  };
}

/** The operations of the API on sessions. */
export type Sessions = ReturnType<typeof createSessions>;
