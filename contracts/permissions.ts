import type { Caller, Credential, GetTokenRequest } from './api/auth.js';
import type { InputRequest } from './api/messages.js';
import type { Operation } from './api/operation.js';
import type { EVENT_CATEGORIES } from './events.js';
import { LIMITS } from './limits.js';
import {
  ANY_AGENT_TYPE,
  NO_AGENT,
  OPERATOR_PREFIX,
  PERSON_PREFIX,
  type Principal,
  Scope,
  scopeIncludes,
} from './primitives.js';

/**
 * The permission checks of the platform. Two kinds of tokens may do less than their scopes say:
 * - one whose `agent_type` is not `credential` acts as an agent. It may act for its own type only, on the sessions and messages that its type
 *   serves or has sent;
 * - one that a tenant's product hands to others, such as a browser, is limited to an end user, a session or agent types (docs/end-users.md).
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
function isForUserOrSession({ user_id, session_id }: TokenLimits): boolean {
  return user_id !== undefined || session_id !== undefined;
}

/** Of these operations, those that cancel whatever a session has. A token that only agent types limit does not see all of that. */
const OF_WHOLE_SESSIONS: ReadonlySet<string> = new Set(['/sessions/close', '/sessions/interrupt']);
const NOT_WHOLE =
  'A token that is limited to agent types alone ends and interrupts no session, since messages of others may be in it. Cancel single messages by /messages/cancel, or limit the token by user_id or session_id too.';

/** Why a token may not call an operation because of its limits; null if it may. @param path as the operation has it */
function limitedCallRefusal(path: string, caller: TokenLimits): string | null {
  if (!isLimited(caller)) return null;
  if (!LIMITED_PATHS.has(path)) return `${OF_LIMITED} do this.`;
  return OF_WHOLE_SESSIONS.has(path) && !isForUserOrSession(caller) ? NOT_WHOLE : null;
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
  return isWithin(
    isForUserOrSession(limits) && session.agent_type === null ? { user_id, session_id } : limits,
    session,
  );
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

/** Who reads: the whole tenant, one agent type of it, or what a token is limited to. */
export type Reader = Pick<Caller, 'tenant_id' | 'agent_type'> & TokenLimits;

/** The agent type that a token acts as; null for a token that acts for the tenant. */
export function actsAs({ agent_type }: Pick<Caller, 'agent_type'>): string | null {
  return agent_type === NO_AGENT ? null : agent_type;
}

/** Why a credential gets no token with this `agent_type`; null if it gets one. */
export function tokenRefusal(credential: Pick<Credential, 'scopes' | 'agent_types'>, agentType: string): string | null {
  const { scopes, agent_types } = credential;
  const any = agent_types.includes(ANY_AGENT_TYPE);
  const named = any ? 'any agent type' : agent_types.join(', ') || 'none';
  if (agentType === NO_AGENT) {
    const isForAgents = agent_types.length > 0 && !scopeIncludes(scopes, 'admin');
    return isForAgents ? `agent_type: the credential is for agents. It may ask for: ${named}.` : null;
  }
  if (any || agent_types.includes(agentType) || scopeIncludes(scopes, 'full')) return null;
  return `agent_type: the credential may not ask for this agent type. It may ask for: ${named}.`;
}

/** Why a credential gets no token for this tenant or with these scopes: a token is never more than its credential. Null if it gets one. */
export function narrowingRefusal(
  credential: Pick<Credential, 'tenant_id' | 'scopes' | 'credential_id'>,
  { tenant_id, scopes = [] }: { tenant_id?: string | undefined; scopes?: Scope[] | undefined },
): string | null {
  if (isOperatorId(credential.credential_id)) return null;
  if (tenant_id !== undefined && tenant_id !== credential.tenant_id)
    return 'tenant_id: must be the tenant of the credential.';
  const missing = scopes.find((scope) => !scopeIncludes(credential.scopes, scope));
  return missing === undefined ? null : `scopes: the credential does not have ${missing}.`;
}

/** Whether it is an operator's own token, which is for no tenant. */
function isOwnToken({ operator, tenant_id }: Pick<Caller, 'operator' | 'tenant_id'>): boolean {
  return operator !== undefined && tenant_id === '';
}

/** Why a token may not call an operation at all; null if it may. */
export function callRefusal(operation: Pick<Operation, 'access' | 'agents' | 'path'>, caller: Caller): string | null {
  const { access, agents, path } = operation;
  if (access === 'public') return null;
  const isOperator = isOwnToken(caller);
  if (access === 'operator') return isOperator ? null : 'This needs the own token of an operator of the platform.';
  if (isOperator)
    return 'The own token of an operator reaches no tenant: /auth/get_token {tenant_id} gives one that does.';
  const scope = access === 'optional' ? 'read' : access;
  if (!scopeIncludes(caller.scopes, scope)) return `This needs the scope ${scope}.`;
  if (agents === 'forbidden' && actsAs(caller) !== null) return 'A token that acts as an agent may not do this.';
  return limitedCallRefusal(path, caller);
}

/** Whether a token may act for agents of a type: one that acts as an agent for its own type only, any other with the scope. */
export function mayActFor(caller: Caller, agentType: string, scope: Scope): boolean {
  const own = actsAs(caller);
  return own === null ? scopeIncludes(caller.scopes, scope) : own === agentType;
}

/** Whether a reader may see an agent of this type and what belongs to it. */
export function isOwnType(reader: Pick<Reader, 'agent_type'>, agentType: string | null): boolean {
  const own = actsAs(reader);
  return own === null || own === agentType;
}

/** The owners of a message: the type that serves it, the type of the agent that sent it, and what limits of tokens look at. */
export interface MessageOwners extends Limitable {
  sender_agent_type: string | null;
  want_agent_type: string | null;
}

/** Who sent a message, or opened a session. */
export function senderOf(row: {
  credential_id: string;
  credential_name?: string | null;
  sender_agent_type: string | null;
}): Principal {
  const { credential_id: id, credential_name: name, sender_agent_type } = row;
  if (sender_agent_type !== null) return { type: 'agent', id: sender_agent_type };
  return { type: typeOf(id), id, ...(name && { name }) };
}

/** What a credential is: of a tenant, an operator's, or that of a person who signs in by OpenID Connect. */
function typeOf(credentialId: string): 'credential' | 'operator' | 'person' {
  if (isOperatorId(credentialId)) return 'operator';
  return isPersonId(credentialId) ? 'person' : 'credential';
}

/** Who a caller is that acts for itself: an end user whom its token is limited to, else its credential. */
export function principalOf({ user_id, credential_id: id }: Pick<Caller, 'user_id' | 'credential_id'>) {
  if (user_id !== undefined) return { type: 'person' as const, id: user_id };
  return { type: typeOf(id), id };
}

/** Whether the reader's agent type sent a message; always true for a reader that acts for the tenant. */
export function isSentBy(
  reader: Pick<Reader, 'agent_type'>,
  message: Pick<MessageOwners, 'sender_agent_type'>,
): boolean {
  return isOwnType(reader, message.sender_agent_type);
}

/** Whether a reader may see a message: one that acts as an agent sees what its type serves or has sent, a limited token what is within its limits. */
export function isOwnMessage(reader: Omit<Reader, 'tenant_id'>, message: MessageOwners): boolean {
  const isOwn = isOwnType(reader, message.agent_type) || isSentBy(reader, message);
  return isOwn && isWithin(reader, { ...message, agent_type: message.agent_type ?? message.want_agent_type });
}

/** Why a caller may not answer any input request; null if that depends on the request. */
export function anyAnswerRefusal(caller: Pick<Caller, 'agent_type' | 'operator'>): string | null {
  if (caller.operator !== undefined) return 'An operator of the platform may not answer input requests.';
  return actsAs(caller) === null ? null : 'A token that acts as an agent may not answer input requests.';
}

/** What decides who may answer an input request. */
export interface OpenQuestion {
  source: InputRequest['source'];
  /** An agent asks, or wants to do what is asked about. */
  by_agent: boolean;
  /** The credential that registered that agent; null if unknown. */
  registered_with: string | null;
  /** Scopes, `sub`s and credentials of the policy; Slack users among them concern Slack only. */
  approvers: readonly string[];
  /** The credentials that sent the message or created the plan, and whether they may answer. */
  sent_with: readonly string[];
  allow_self: boolean;
}

/** Whether a policy's approvers name a caller: its `sub`, its credential, a name that it has as an approver, or a scope. */
function isNamed({ sub, credential_id, approver_names = [], scopes }: Caller, approvers: readonly string[]): boolean {
  return approvers.some((approver) => {
    if ([sub, credential_id, ...approver_names].includes(approver)) return true;
    const scope = Scope.safeParse(approver.replace(/^scope:/, ''));
    return scope.success && scopeIncludes(scopes, scope.data);
  });
}

/** Why a caller may not answer an input request; null if it may. */
export function answerRefusal(caller: Caller, question: OpenQuestion): string | null {
  const { source, by_agent, registered_with, approvers, sent_with, allow_self } = question;
  const refusal = anyAnswerRefusal(caller);
  if (refusal !== null) return refusal;
  if (isLimited(caller) && (source !== 'agent' || approvers.length > 0))
    return 'A token with limits answers only what an agent asks, and only where no approvers are named.';
  const needed = source === 'agent' ? 'read' : 'admin';
  if (!scopeIncludes(caller.scopes, needed) && !isNamed(caller, approvers))
    return `Answering this request needs the scope ${needed}, or to be one of its approvers.`;
  if (!allow_self && sent_with.includes(caller.credential_id))
    return 'The credential that sent the message or created the plan may not answer this request.';
  const isOwnAgent = by_agent && registered_with === caller.credential_id;
  if (!isOwnAgent || scopeIncludes(caller.scopes, 'full')) return null;
  return 'The credential that registered the agent may not answer requests of the agent or about what it does.';
}

/** Whether it is the id of an operator of the platform, not of a credential of a tenant. */
export function isOperatorId(credentialId: string): boolean {
  return credentialId.startsWith(OPERATOR_PREFIX);
}

/** Whether it is the id of a person who signs in by OpenID Connect, in one tenant. */
function isPersonId(credentialId: string): boolean {
  return credentialId.startsWith(PERSON_PREFIX);
}

/** A credential that wrote an alert rule: it may have read the rule's tokens, and knows the secret with which its Slack users are proved. */
export interface RuleWriter {
  credential_id: string;
  is_full: boolean;
}

/** Why nobody may answer an input request by what an alert rule sent; null if that may be. The answer may be that of any of the rule's writers. */
export function ruleAnswerRefusal(
  writers: readonly RuleWriter[],
  { by_agent, registered_with, sent_with, allow_self }: OpenQuestion,
): string | null {
  if (writers.some(({ credential_id }) => isOperatorId(credential_id)))
    return 'An operator of the platform wrote the alert rule, and may not answer requests.';
  const wrote = (credential: string | null) => writers.find(({ credential_id }) => credential_id === credential);
  if (!allow_self && sent_with.some(wrote))
    return 'The credential that sent the message or created the plan wrote the alert rule, and it may not answer this request.';
  const registrant = by_agent ? wrote(registered_with) : undefined;
  if (registrant === undefined || registrant.is_full) return null;
  return 'The credential that registered the agent wrote the alert rule, and it may not answer requests of the agent or about what it does.';
}

/** Whether a policy's approvers name a Slack user: `U…` or `slack:U…`. */
export function namesSlackUser(approvers: readonly string[], userId: string): boolean {
  return approvers.some((approver) => approver === userId || approver === `slack:${userId}`);
}
