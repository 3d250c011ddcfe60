import type { SessionDetails, SessionSummary, SessionsGetRequest } from '../contracts/api/sessions.js';
import { type Reader, senderOf } from '../contracts/permissions.js';
import { queryJson } from '../db/json-rows.js';
import { ownSessions, viewOf } from '../db/ownership.js';
import { type CursorPage, KeyPosition, readCursorPage } from '../db/pages/cursor-page.js';
import { createCursors } from '../db/pages/cursors.js';
import type { KeyList } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import { agentsOf } from './session-agents.js';

/** A session as `sessions/get` shows it, and its metadata. */
type SessionRow = Omit<SessionDetails, 'agents'>;
type StoredRow = Omit<SessionRow, 'sent_by'> & Parameters<typeof senderOf>[0];

/** `paused` is derived: a message of the session waits for human input. */
const STATUS = `CASE WHEN s.status = 'active' AND EXISTS (
    SELECT 1 FROM running_messages w WHERE w.tenant_id = s.tenant_id AND w.session_id = s.session_id AND w.state = 'input-required')
  THEN 'paused' ELSE s.status END`;

const COLUMNS = `s.session_id, s.tenant_id, s.user_id, s.credential_id, s.sender_agent_type, s.created_at, s.ended_at, s.metadata, s.ordered, ${STATUS} AS status,
  t.total_turns, t.total_tokens, t.uncounted`;

const TOTALS = 'CROSS JOIN LATERAL totals_of(s) t';

/** `uncounted`: messages that were counted one by one for the totals. */
type CountedRow = StoredRow & { uncounted: number };

/** Above this many, a read brings the stored totals of the session forward. The usage roll-up usually has; after an erasure, for example, it has not. */
const UNCOUNTED_MOST = 1_000;

/** A session as answers show it. @param behind gets the ids of sessions whose totals are to be brought forward */
function shown({ uncounted, credential_id, sender_agent_type, ...row }: CountedRow, behind: string[]): SessionRow {
  if (uncounted > UNCOUNTED_MOST) behind.push(row.session_id);
  return { ...row, sent_by: senderOf({ credential_id, sender_agent_type }) };
}

/** Brings the totals of sessions forward, ten thousand messages in a transaction. */
async function advanceTotals(db: Db, tenantId: string, sessionIds: readonly string[]): Promise<void> {
  for (const sessionId of sessionIds) {
    const advance = () =>
      db.tenant(tenantId, (tx) =>
        tx.query<{ counted: number }>('SELECT advance_totals($1, $2) AS counted', [tenantId, sessionId]),
      );
    while (((await advance())[0]?.counted ?? 0) > 0);
  }
}

/** Reads one session. @param view what may be read (`viewOf`); null for all of the tenant. @throws PlatformError NOT_FOUND */
export async function readSession(
  tx: Tx,
  tenantId: string,
  sessionId: string,
  view: string | null = null,
  behind: string[] = [],
): Promise<SessionRow> {
  const [row] = await queryJson<CountedRow>(
    tx,
    `SELECT ${COLUMNS} FROM sessions s ${TOTALS} WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${ownSessions('s', '$3')}`,
    [tenantId, sessionId, view],
  );
  if (!row) throw new PlatformError('NOT_FOUND', 'There is no session of that session_id.');
  return shown(row, behind);
}

/** Reads one session with its metadata and agents (`/sessions/get_by_id`). @throws PlatformError NOT_FOUND */
export async function readDetails(db: Db, reader: Reader, sessionId: string): Promise<SessionDetails> {
  const { tenant_id } = reader;
  const behind: string[] = [];
  const details = await db.tenant(tenant_id, async (tx) => {
    const row = await readSession(tx, tenant_id, sessionId, viewOf(reader), behind);
    return { ...row, agents: await agentsOf(tx, row) };
  });
  await advanceTotals(db, tenant_id, behind);
  return details;
}

/** The filter by status. It is planned with its value, so that one branch is left. Few sessions are paused, so these are found by their waiting messages. */
const OF_STATUS = `CASE $2::text
  WHEN 'paused' THEN s.status = 'active' AND s.session_id = ANY (ARRAY(SELECT DISTINCT w.session_id FROM running_messages w
    WHERE w.tenant_id = $1 AND w.state = 'input-required'))
  WHEN 'active' THEN ${STATUS} = 'active' ELSE coalesce(s.status = $2, true) END`;

const MATCHING = `sessions s WHERE s.tenant_id = $1 AND ${OF_STATUS} AND ${ownSessions('s', '$3')}
  AND ($4::text IS NULL OR s.user_id = $4) AND ($5::text IS NULL OR s.credential_id = $5)
  AND ($6::text IS NULL OR EXISTS (
    SELECT 1 FROM session_agents a WHERE a.tenant_id = s.tenant_id AND a.session_id = s.session_id AND a.agent_type = $6))
  AND ($7::timestamptz IS NULL OR s.created_at >= $7) AND ($8::timestamptz IS NULL OR s.created_at < $8)
  AND ($9::text IS NULL OR s.session_id < $9)`;

/**
 * Lists a page of the sessions that a reader may see, newest first.
 * @throws PlatformError REQUEST_TIMEOUT as `readPage`; BAD_REQUEST for the cursor of another list
 */
export async function listSessions(
  { db, secrets }: { db: Db; secrets: Pick<Secrets, 'macs'> },
  reader: Reader,
  query: SessionsGetRequest,
): Promise<CursorPage<SessionSummary>> {
  const { tenant_id } = reader;
  const { cursor: _cursor, page: _page, page_size: _size, ...filters } = query;
  const { status, user_id, credential_id, agent_type, since, until } = filters;
  const given = [user_id, credential_id, agent_type, since, until].map((value) => value ?? null);
  const listBefore = (key: string | null): KeyList => ({
    key: 's.session_id',
    from: MATCHING,
    orderBy: 's.session_id DESC',
    values: [tenant_id, status ?? null, viewOf(reader), ...given, key],
    appendOnly: status !== 'active' && status !== 'paused',
  });
  const select = `SELECT ${COLUMNS} FROM sessions s ${TOTALS} WHERE s.tenant_id = $1 AND s.session_id = ANY ($2) ORDER BY s.session_id DESC`;
  const behind: string[] = [];
  const list = [tenant_id, viewOf(reader), filters];
  const page = await readCursorPage(db, listBefore, query, {
    cursors: createCursors(secrets, { purpose: 'session-cursor', list, schema: KeyPosition }),
    rowsOf: async (tx, ids) => {
      const rows = await queryJson<CountedRow>(tx, select, [tenant_id, ids]);
      return rows.map((row) => shown(row, behind));
    },
    keyOf: ({ session_id }) => session_id,
  });
  await advanceTotals(db, tenant_id, behind);
  return page;
}
