import { actsAs, type MessageOwners, type Reader } from '../contracts/permissions.js';
import { messagesOfSession } from './message-filters.js';
import type { Tx } from './pool.js';

/** What a reader may see, as the parameter of the conditions below: null for the whole tenant. */
export function viewOf(reader: Reader): string | null {
  const agent_type = actsAs(reader) ?? undefined;
  const { user_id, session_id, agent_types_allowed: agent_types } = reader;
  const view = JSON.stringify({ agent_type, user_id, session_id, agent_types });
  return view === '{}' ? null : view;
}

/**
 * The condition that a record is in a `viewOf`. @param own SQL: an agent of this type owns it @param ofTypes SQL: it is of the types that a
 * token is limited to
 */
function inView(
  alias: string,
  parameter: string,
  own: (agentType: string) => string,
  ofTypes: (types: string) => string,
): string {
  const view = `${parameter}::jsonb`;
  const equals = (member: string) =>
    `(${view} ->> '${member}' IS NULL OR ${alias}.${member} = ${view} ->> '${member}')`;
  return `(${view} IS NULL OR (${view} ->> 'agent_type' IS NULL OR ${own(`(${view} ->> 'agent_type')`)})
    AND ${equals('user_id')} AND ${equals('session_id')} AND (${view} -> 'agent_types' IS NULL OR ${ofTypes(`${view} -> 'agent_types'`)}))`;
}

/** `isOwnMessage` (contracts/permissions.ts) as SQL. @param parameter the result of `viewOf` */
export function ownMessages(alias: string, parameter: string): string {
  const own = (agentType: string) => `${alias}.agent_type = ${agentType} OR ${alias}.sender_agent_type = ${agentType}`;
  return inView(alias, parameter, own, (types) => `${types} ? coalesce(${alias}.agent_type, ${alias}.want_agent_type)`);
}

/** The type of a session, as SQL: that of its agent, else the one that its first message asks for. NULL: it has none yet. */
export function typeOfSession(alias: string): string {
  const messages = messagesOfSession('o', `${alias}.tenant_id`, `${alias}.session_id`);
  const first = `(SELECT coalesce(o.agent_type, o.want_agent_type) FROM messages o WHERE ${messages} ORDER BY o.message_id LIMIT 1)`;
  return `coalesce(${alias}.agent_type, ${first})`;
}

/**
 * As `ownMessages`, for sessions (`isSessionWithin` in contracts/permissions.ts): an agent type owns a session if it is the type of one of
 * its agents, or opened it, or sent or serves a message of it.
 */
export function ownSessions(alias: string, parameter: string): string {
  const messages = messagesOfSession('o', `${alias}.tenant_id`, `${alias}.session_id`);
  const own = (agentType: string) => `${alias}.agent_type = ${agentType} OR ${alias}.sender_agent_type = ${agentType}
    OR EXISTS (SELECT 1 FROM session_agents j WHERE j.tenant_id = ${alias}.tenant_id AND j.session_id = ${alias}.session_id AND j.agent_type = ${agentType})
    OR EXISTS (SELECT 1 FROM messages o WHERE ${messages} AND ${agentType} IN (o.agent_type, o.sender_agent_type))`;
  const isNamed = `${parameter}::jsonb ?| ARRAY['user_id', 'session_id']`;
  return inView(alias, parameter, own, (types) => `coalesce(${types} ? ${typeOfSession(alias)}, ${isNamed})`);
}

const FOREIGN = `SELECT 1 FROM sessions s WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${ownSessions('s', '$3')} IS NOT TRUE`;

/** Whether a session of this id exists that the reader may not see. */
export async function isForeignSession(tx: Tx, reader: Reader, sessionId: string): Promise<boolean> {
  const view = viewOf(reader);
  return view !== null && (await tx.query(FOREIGN, [reader.tenant_id, sessionId, view])).length > 0;
}

/** The owners of a message; null when the tenant has no message of that id. */
export async function ownersOf(tx: Tx, tenantId: string, messageId: string): Promise<MessageOwners | null> {
  const [row] = await tx.query<MessageOwners>(
    `SELECT agent_type, sender_agent_type, want_agent_type, user_id, session_id FROM messages
      WHERE tenant_id = $1 AND message_id = $2`,
    [tenantId, messageId],
  );
  return row ?? null;
}
