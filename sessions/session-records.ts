import type { SessionDetails, SessionSummary, SessionsGetRequest } from '../contracts/api/sessions.js';
import { actsAs, type Reader } from '../contracts/permissions.js';
import { queryJson } from '../db/json-rows.js';
import { messagesOfSession } from '../db/message-filters.js';
import { ownSessions } from '../db/ownership.js';
import { type KeyList, type Page, readPage } from '../db/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { agentsOf } from './session-agents.js';

/** A session as `sessions/get` shows it, and its metadata. */
type SessionRow = Omit<SessionDetails, 'agents'>;

/** `paused` is derived: a message of the session waits for human input. */
const STATUS = `CASE WHEN s.status = 'active' AND EXISTS (
    SELECT 1 FROM running_messages w WHERE w.tenant_id = s.tenant_id AND w.session_id = s.session_id AND w.state = 'input-required')
  THEN 'paused' ELSE s.status END`;

const COLUMNS = `s.session_id, s.tenant_id, s.user_id, s.created_at, s.ended_at, s.metadata, s.ordered, ${STATUS} AS status,
  t.total_turns, t.total_tokens`;

const TOTALS = `LEFT JOIN LATERAL (
    SELECT count(*) AS total_turns,
           shown_tokens(coalesce(sum(reported_tokens(m.usage, 'input_tokens') + reported_tokens(m.usage, 'output_tokens')), 0)) AS total_tokens
      FROM messages m WHERE ${messagesOfSession('m', 's.tenant_id', 's.session_id')}) t ON true`;

/** Reads one session. @param own the agent type whose sessions may be read; null for all of the tenant. @throws PlatformError NOT_FOUND */
export async function readSession(
  tx: Tx,
  tenantId: string,
  sessionId: string,
  own: string | null = null,
): Promise<SessionRow> {
  const [row] = await queryJson<SessionRow>(
    tx,
    `SELECT ${COLUMNS} FROM sessions s ${TOTALS} WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${ownSessions('s', '$3')}`,
    [tenantId, sessionId, own],
  );
  if (!row) throw new PlatformError('NOT_FOUND', 'There is no session of that session_id.');
  return row;
}

/** Reads one session with its metadata and agents (`/sessions/get_by_id`). @throws PlatformError NOT_FOUND */
export async function readDetails(db: Db, reader: Reader, sessionId: string): Promise<SessionDetails> {
  return db.tenant(reader.tenant_id, async (tx) => {
    const row = await readSession(tx, reader.tenant_id, sessionId, actsAs(reader));
    return { ...row, agents: await agentsOf(tx, row) };
  });
}

/** Planned with the values, so that one case is left. Few sessions are paused, so these are found by their messages. */
const OF_STATUS = `CASE $2::text
  WHEN 'paused' THEN s.status = 'active' AND s.session_id = ANY (ARRAY(SELECT DISTINCT w.session_id FROM running_messages w
    WHERE w.tenant_id = $1 AND w.state = 'input-required'))
  WHEN 'active' THEN ${STATUS} = 'active' ELSE coalesce(s.status = $2, true) END`;

/** Lists a page of the sessions that a reader may see, newest first. @throws PlatformError REQUEST_TIMEOUT as `readPage` */
export function listSessions(db: Db, reader: Reader, query: SessionsGetRequest): Promise<Page<SessionSummary>> {
  const { tenant_id } = reader;
  const list: KeyList = {
    key: 's.session_id',
    from: `sessions s WHERE s.tenant_id = $1 AND ${OF_STATUS} AND ${ownSessions('s', '$3')}`,
    orderBy: 's.session_id DESC',
    values: [tenant_id, query.status ?? null, actsAs(reader)],
    appendOnly: query.status !== 'active' && query.status !== 'paused',
  };
  const select = `SELECT ${COLUMNS} FROM sessions s ${TOTALS} WHERE s.tenant_id = $1 AND s.session_id = ANY ($2) ORDER BY s.session_id DESC`;
  return readPage(db, list, query, (tx, ids) => queryJson<SessionRow>(tx, select, [tenant_id, ids]));
}
