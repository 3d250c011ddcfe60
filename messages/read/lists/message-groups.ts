import type { MessageGroup, MessageGroupsRequest } from '../../../contracts/api/messages.js';
import { messagesInState } from '../../../db/message-filters.js';
import { inKeyOrder } from '../../../db/pages/page.js';
import type { Db } from '../../../db/pool.js';
import { idBound } from '../../../runtime/ids.js';
import { waiting } from '../waits.js';

/** The largest groups that are shown. */
const GROUPS_MAX = 100;

const COUNTED = `count(*)::integer AS count, min(m.created_at) AS oldest_at, max(m.created_at) AS newest_at,
  max(m.message_id) AS sample_message_id`;
const OF_TENANT = 'm.tenant_id = $1 AND ($2::text IS NULL OR m.message_id >= $2)';

const BY_ERROR = `SELECT m.error_code AS key, ${COUNTED} FROM messages m
   WHERE ${OF_TENANT} AND m.error_code IS NOT NULL AND m.state = coalesce($3, 'failed') GROUP BY 1`;

const TYPE = "coalesce(m.agent_type, m.want_agent_type, '') AS key";
/** Messages that are not over are few, and in a table of their own. */
const BY_TYPE = `
  SELECT ${TYPE}, ${COUNTED} FROM running_messages m WHERE ${OF_TENANT} AND m.state = coalesce($3, m.state) GROUP BY 1
  UNION ALL
  SELECT ${TYPE}, ${COUNTED} FROM messages m
   WHERE ${OF_TENANT} AND $3 IN ('completed', 'failed', 'canceled') AND ${messagesInState('m', '$3')} GROUP BY 1`;

/** `$4`: messages of the tenant that agents may have at once, `$5`: for how long they have waited at least, in milliseconds. */
const BY_WAIT = `
  SELECT m.kind AS key, ${COUNTED} FROM (${waiting('($3::text IS NULL OR r.state = $3)', '$4::integer')}) m
   WHERE ${OF_TENANT} AND m.kind IS NOT NULL AND ($5::bigint IS NULL OR m.since <= now() - $5 * interval '1 ms') GROUP BY 1`;

interface Group {
  key: string;
  count: number;
  oldest_at: Date;
  newest_at: Date;
  sample_message_id: string;
}

/**
 * Counts a tenant's messages by error, agent type, or what they wait for; the largest groups first.
 * @param inFlightMax messages of the tenant that agents may have at once
 * @throws PlatformError REQUEST_TIMEOUT when counting takes longer than ten seconds: a later `since` reads less
 */
export async function groupMessages(
  db: Db,
  tenantId: string,
  { by, state, since, waited_ms }: MessageGroupsRequest,
  inFlightMax: number,
): Promise<MessageGroup[]> {
  const values = [tenantId, since === undefined ? null : idBound('msg', Date.parse(since)), state ?? null];
  const groups = await inKeyOrder(db, tenantId, (tx) => {
    if (by === 'waits_for') return tx.query<Group>(BY_WAIT, [...values, inFlightMax, waited_ms ?? null]);
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
