import { actsAs, type MessageOwners, type Reader } from '../contracts/permissions.js';
import { messagesOfSession } from './message-filters.js';
import type { Tx } from './pool.js';

/** `isOwnMessage` (contracts/permissions.ts) as SQL. The parameter is the result of `actsAs`: null for the whole tenant. */
export function ownMessages(alias: string, parameter: string): string {
  return `(${parameter}::text IS NULL OR ${alias}.agent_type = ${parameter} OR ${alias}.sender_agent_type = ${parameter})`;
}

/** The same for sessions: the type is one of the session's agents, opened it, or sent or serves a message of it. */
export function ownSessions(alias: string, parameter: string): string {
  return `(${parameter}::text IS NULL OR ${alias}.agent_type = ${parameter} OR ${alias}.sender_agent_type = ${parameter}
    OR EXISTS (SELECT 1 FROM session_agents j WHERE j.tenant_id = ${alias}.tenant_id AND j.session_id = ${alias}.session_id AND j.agent_type = ${parameter})
    OR EXISTS (SELECT 1 FROM messages o WHERE ${messagesOfSession('o', `${alias}.tenant_id`, `${alias}.session_id`)} AND ${parameter} IN (o.agent_type, o.sender_agent_type)))`;
}

const FOREIGN = `SELECT 1 FROM sessions s WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${ownSessions('s', '$3')} IS NOT TRUE`;

/** Whether a session of this id exists that the reader may not see. */
export async function isForeignSession(tx: Tx, reader: Reader, sessionId: string): Promise<boolean> {
  const own = actsAs(reader);
  return own !== null && (await tx.query(FOREIGN, [reader.tenant_id, sessionId, own])).length > 0;
}

/** The owners of a message; null when the tenant has no message of that id. */
export async function ownersOf(tx: Tx, tenantId: string, messageId: string): Promise<MessageOwners | null> {
  const [row] = await tx.query<MessageOwners & Record<string, unknown>>(
    'SELECT agent_type, sender_agent_type FROM messages WHERE tenant_id = $1 AND message_id = $2',
    [tenantId, messageId],
  );
  return row ?? null;
}
