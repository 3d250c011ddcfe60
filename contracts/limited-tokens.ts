import type { Caller, GetTokenRequest } from './api/auth.js';
import type { EVENT_CATEGORIES } from './events.js';
import { LIMITS } from './limits.js';
import { NO_AGENT, PERSON_PREFIX } from './primitives.js';

/**
 * Tokens that a tenant's product hands to others, such as a browser: limited to an end user, a session or agent types. What they reach, and which
 * records, is decided here (docs/end-users.md).
 */

/** What a token is limited to. */
export type TokenLimits = Pick<Caller, 'user_id' | 'session_id' | 'agent_types_allowed'>;

/** Whether a token is limited. */
export function isLimited({ user_id, session_id, agent_types_allowed }: TokenLimits): boolean {
  return user_id !== undefined || session_id !== undefined || agent_types_allowed !== undefined;
}

/**
 * The operations that a limited token reaches, by path, for records within its limits. Everything else is 403. None of the console's are among
 * them: its sessions have all rights of a credential, so a limited token neither starts nor reads nor ends one.
 */
const LIMITED_PATHS: ReadonlySet<string> = new Set([
  '/send',
  '/a2a/:agent_type',
  '/a2a/:agent_type/.well-known/agent-card.json',
  '/sessions/init',
  '/sessions/get',
  '/sessions/get_by_id',
  '/sessions/close',
  '/sessions/interrupt',
  '/messages/get',
  '/messages/get_by_id',
  '/messages/pending',
  '/messages/cancel',
  '/messages/:id/resolve',
  '/requests/get',
  '/telemetry/stream_events',
]);

/** The methods of A2A that a limited token may call, of both versions. Push configurations are not among them: they name where else to send. */
const LIMITED_METHODS: ReadonlySet<string> = new Set([
  ...['message/send', 'message/stream', 'tasks/get', 'tasks/cancel', 'tasks/resubscribe'],
  ...['SendMessage', 'SendStreamingMessage', 'GetTask', 'ListTasks', 'CancelTask', 'SubscribeToTask'],
]);

const OF_LIMITED = 'A token that is limited to a user, a session or agent types may not';

/** Whether a token is limited to a user or a session: what is in a session of theirs is theirs, whoever serves it. */
function isNamed({ user_id, session_id }: TokenLimits): boolean {
  return user_id !== undefined || session_id !== undefined;
}

/** Of these operations, those that cancel whatever a session has. A token that only agent types limit does not see all of that. */
const OF_WHOLE_SESSIONS: ReadonlySet<string> = new Set(['/sessions/close', '/sessions/interrupt']);
const NOT_WHOLE =
  'A token that is limited to agent types alone ends and interrupts no session, since messages of others may be in it. Cancel single messages by /messages/cancel, or limit the token by user_id or session_id too.';

/** Why a token may not call an operation because of its limits; null if it may. @param path as the operation has it */
export function limitedCallRefusal(path: string, caller: TokenLimits): string | null {
  if (!isLimited(caller)) return null;
  if (!LIMITED_PATHS.has(path)) return `${OF_LIMITED} do this.`;
  return OF_WHOLE_SESSIONS.has(path) && !isNamed(caller) ? NOT_WHOLE : null;
}

/** Why a token may not call a method of A2A because of its limits; null if it may. */
export function limitedMethodRefusal(method: string, caller: TokenLimits): string | null {
  return isLimited(caller) && !LIMITED_METHODS.has(method) ? `${OF_LIMITED} call ${method}.` : null;
}

/**
 * The categories of events that a limited token's streams have, of messages and sessions within its limits. Plans, policies and guards are the
 * tenant's own: what they come to for a message is in that message's events.
 */
export const LIMITED_EVENTS: ReadonlySet<string> = new Set<(typeof EVENT_CATEGORIES)[number]>([
  'session',
  'message',
  'dispatch',
]);

/** Why a send may not set a push configuration. */
export const LIMITED_PUSH = `${OF_LIMITED} set a push configuration.`;

/** What limits look at: a message, or a session. */
export interface Limitable {
  user_id: string | null;
  session_id: string;
  /** That has it, or that it asks for. */
  agent_type: string | null;
}

/** Whether a record is within the limits of a token: always, of one without limits. */
export function isWithin({ user_id, session_id, agent_types_allowed }: TokenLimits, record: Limitable): boolean {
  if (user_id !== undefined && user_id !== record.user_id) return false;
  if (session_id !== undefined && session_id !== record.session_id) return false;
  return agent_types_allowed === undefined || agent_types_allowed.includes(record.agent_type ?? '');
}

/** The same for a session. One without a type is within any types for a token that is limited to its user, or to it, as well. */
export function isSessionWithin(limits: TokenLimits, session: Limitable): boolean {
  const { user_id, session_id } = limits;
  return isWithin(isNamed(limits) && session.agent_type === null ? { user_id, session_id } : limits, session);
}

/** What is wrong with the limits that a token is asked for with; null where nothing is. */
export function limitsProblem(request: Omit<GetTokenRequest, 'client_id' | 'client_secret'>): string | null {
  const { user_id, session_id, agent_types, agent_type, scopes = [], expires_in = 0 } = request;
  if (!isLimited({ user_id, session_id, agent_types_allowed: agent_types })) return null;
  if (user_id?.startsWith(PERSON_PREFIX)) return `user_id: must not begin with ${PERSON_PREFIX}.`;
  if (agent_type !== NO_AGENT) return 'agent_type: a token with limits acts for no agent.';
  if (scopes.some((scope) => scope !== 'read')) return 'scopes: a token with limits has the scope read only.';
  const most = LIMITS.limitedTokenSecondsMax;
  return expires_in > most ? `expires_in: at most ${most} for a token with limits.` : null;
}
