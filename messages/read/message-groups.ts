import type { MessageGroup, MessageGroupsRequest } from '../../contracts/api/messages.js';
import { messagesInState } from '../../db/message-filters.js';
import { inKeyOrder } from '../../db/pages/page.js';
import type { Db, Tx } from '../../db/pool.js';
import { idBound } from '../../runtime/ids.js';
import { HAS_TURN, kindOf, type Rest } from './waits.js';

/** The largest groups that are shown. */
const GROUPS_MAX = 100;

const COUNTED = `count(*)::integer AS count, min(m.created_at) AS oldest_at, max(m.created_at) AS newest_at,
  max(m.message_id) AS sample_message_id`;
const OF_TENANT = 'm.tenant_id = $1 AND ($2::text IS NULL OR m.message_id >= $2)';

const BY_ERROR = `SELECT m.error_code AS key, ${COUNTED} FROM messages m
   WHERE ${OF_TENANT} AND m.error_code IS NOT NULL AND m.state = coalesce($3, 'failed') GROUP BY 1`;

const TYPE = "coalesce(m.agent_type, m.want_agent_type, '') AS key";
/** Those that are not over are few, and in a table of their own. */
const BY_TYPE = `
  SELECT ${TYPE}, ${COUNTED} FROM running_messages m WHERE ${OF_TENANT} AND m.state = coalesce($3, m.state) GROUP BY 1
  UNION ALL
  SELECT ${TYPE}, ${COUNTED} FROM messages m
   WHERE ${OF_TENANT} AND $3 IN ('completed', 'failed', 'canceled') AND ${messagesInState('m', '$3')} GROUP BY 1`;

const BY_WAIT = `
  WITH resting AS MATERIALIZED (
    SELECT r.*, ${HAS_TURN} AS has_turn FROM running_messages r
     WHERE r.tenant_id = $1 AND (r.current_dispatch_id IS NULL OR r.state = 'input-required') AND ($3::text IS NULL OR r.state = $3)),
  queues AS MATERIALIZED (
    SELECT q.queue, is_online($1, q.queue) AS online FROM (SELECT DISTINCT queue FROM resting WHERE queue IS NOT NULL) q)
  SELECT m.state = 'input-required' AS asks, m.queue, m.undecided, m.has_turn, q.online,
         (SELECT in_flight($1, $4) >= $4) AS quota_reached, ${COUNTED}
    FROM resting m LEFT JOIN queues q USING (queue) WHERE ${OF_TENANT} GROUP BY 1, 2, 3, 4, 5`;

interface Counted extends Record<string, unknown> {
  count: number;
  oldest_at: Date;
  newest_at: Date;
  sample_message_id: string;
}

type Group = Counted & { key: string };

function joined(one: Group | undefined, other: Group): Group {
  if (!one) return other;
  const newer = one.sample_message_id > other.sample_message_id ? one : other;
  const older = one.oldest_at < other.oldest_at ? one : other;
  return { ...newer, count: one.count + other.count, oldest_at: older.oldest_at };
}

/** Messages that wait, by what for: those of one kind together, whichever queues they are in. */
async function byWait(tx: Tx, values: unknown[]): Promise<Group[]> {
  const found = new Map<string, Group>();
  for (const row of await tx.query<Rest & Counted & { asks: boolean }>(BY_WAIT, values)) {
    const key = row.asks ? 'person' : kindOf(row);
    if (key !== undefined) found.set(key, joined(found.get(key), { ...row, key }));
  }
  return [...found.values()];
}

/**
 * Counts a tenant's messages by error, agent type, or what they wait for; the largest groups first.
 * @param inFlightMax messages of the tenant that agents may have at once
 * @throws PlatformError REQUEST_TIMEOUT when counting takes longer than ten seconds: a later `since` reads less
 */
export async function groupMessages(
  db: Db,
  tenantId: string,
  { by, state, since }: MessageGroupsRequest,
  inFlightMax: number,
): Promise<MessageGroup[]> {
  const values = [tenantId, since === undefined ? null : idBound('msg', Date.parse(since)), state ?? null];
  const groups = await inKeyOrder(db, tenantId, (tx) => {
    if (by === 'waits_for') return byWait(tx, [...values, inFlightMax]);
    return tx.query<Group>(by === 'error_code' ? BY_ERROR : BY_TYPE, values);
  });
  return groups
    .sort((one, other) => other.count - one.count || (one.key < other.key ? -1 : 1))
    .slice(0, GROUPS_MAX)
    .map(({ key, count, oldest_at, newest_at, sample_message_id }) => ({
      ...{ key, count, sample_message_id },
      oldest_at: oldest_at.toISOString(),
      newest_at: newest_at.toISOString(),
    }));
}
