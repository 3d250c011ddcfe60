import type { GetUsageRequest, UsageGroup, UsageRange, UsageRow, UsageSums } from '../contracts/api/usage.js';
import { isTimedOut } from '../db/errors.js';
import { limitMs } from '../db/pages/page.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { CatchUp } from './roll-up.js';

/** What reading usage takes. */
export interface UsageDeps {
  db: Db;
  catchUpUsage: CatchUp;
}

/** How long the statement of a report may take. */
const REPORT_MS = 10_000;

/** Where the rows of a group are read, what names the tenant there, and their key in SQL. */
const GROUPS: Record<UsageGroup, { table: string; tenant?: string; key: string; kind?: string }> = {
  agent_type: { table: 'usage_hours', key: "nullif(u.agent_type, '')" },
  model: { table: 'usage_hours', key: "nullif(u.model, '')" },
  instance_id: { table: 'usage_hours', key: "nullif(u.instance_id, '')" },
  day: { table: 'usage_hours', key: "to_char(u.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD')" },
  session: {
    table: 'usage_sessions',
    tenant: 'uuid_of($1)',
    key: "nullif(session_of(u.session_uuid, u.session_name), '')",
  },
  user: { table: 'usage_by_key', kind: 'user', key: "nullif(u.key, '')" },
  credential: { table: 'usage_by_key', kind: 'credential', key: "nullif(u.key, '')" },
};

/** The first hour of a range. */
const SINCE: Record<UsageRange, string> = {
  '24h': "date_trunc('hour', now(), 'UTC') - interval '23 hours'",
  '7d': "date_trunc('day', now(), 'UTC') - interval '144 hours'",
  '30d': "date_trunc('day', now(), 'UTC') - interval '696 hours'",
};

const SUMS = `
  coalesce(sum(u.messages), 0)::bigint AS messages, coalesce(sum(u.dispatches), 0)::bigint AS dispatches,
  coalesce(sum(u.tool_calls), 0)::bigint AS tool_calls, shown_tokens(coalesce(sum(u.input_tokens), 0)) AS input_tokens,
  shown_tokens(coalesce(sum(u.output_tokens), 0)) AS output_tokens,
  shown_tokens(coalesce(sum(u.input_tokens + u.output_tokens), 0)) AS total_tokens,
  coalesce(sum(u.duration_ms), 0)::bigint AS duration_ms, shown_cost(coalesce(sum(u.cost_usd), 0)) AS cost_usd`;

type KeyedRow = UsageSums & { key: string | null };

/** A usage report without the members that are the request's. */
export interface UsageReport {
  totals: UsageSums;
  rows: UsageRow[];
  /** All rows of the report, not those of the page only. */
  count: number;
}

const totalsOf = (range: UsageRange) =>
  `SELECT ${SUMS} FROM usage_hours u WHERE u.tenant_id = $1 AND u.hour >= ${SINCE[range]}`;

/** All rows. Those of nothing are left over where messages that were of no agent have moved to one. */
function groupsOf({ range, group_by }: GetUsageRequest): string {
  const { table, tenant = '$1', key, kind } = GROUPS[group_by];
  const ofKind = kind === undefined ? '' : ` AND u.kind = '${kind}'`;
  return `
    SELECT ${key} AS key, ${SUMS} FROM ${table} u WHERE u.tenant_id = ${tenant} AND u.hour >= ${SINCE[range]}${ofKind} GROUP BY 1
    HAVING (sum(u.messages), sum(u.dispatches), sum(u.tool_calls), sum(u.input_tokens + u.output_tokens), sum(u.cost_usd)) <> (0, 0, 0, 0, 0)`;
}

/** Totals and rows in one statement, so that they agree. */
function statementOf(request: GetUsageRequest): string {
  const { range, sort, order, page, page_size, summary } = request;
  const column = sort === 'tokens' ? 'total_tokens' : sort;
  const pageOfRows = `SELECT * FROM groups g ORDER BY g.${column} ${order}, g.key LIMIT ${page_size} OFFSET ${(page - 1) * page_size}`;
  return `
    WITH groups AS (${summary ? `${groupsOf(request)} LIMIT 0` : groupsOf(request)})
    SELECT (SELECT row_to_json(t) FROM (${totalsOf(range)}) t) AS totals, (SELECT count(*) FROM groups) AS count,
           (SELECT coalesce(json_agg(p), '[]') FROM (${pageOfRows}) p) AS rows`;
}

/**
 * Reports what a tenant's agents used (`/telemetry/get_usage`), with everything that was committed before the call.
 * @throws PlatformError REQUEST_TIMEOUT when it takes longer than ten seconds to read
 */
export async function readUsage(
  { db, catchUpUsage }: UsageDeps,
  tenantId: string,
  request: GetUsageRequest,
): Promise<UsageReport> {
  await catchUpUsage();
  try {
    const [report] = await db.tenant(tenantId, async (tx) => {
      await tx.query(limitMs(db, REPORT_MS));
      return tx.query<{ totals: UsageSums; rows: KeyedRow[]; count: number }>(statementOf(request), [tenantId]);
    });
    if (!report) throw new Error('the sums of usage gave no row');
    return { ...report, rows: report.rows.map(({ key, ...sums }) => ({ [request.group_by]: key, ...sums })) };
  } catch (error) {
    if (!isTimedOut(error)) throw error;
    throw new PlatformError(
      'REQUEST_TIMEOUT',
      'The usage was not added up within ten seconds. Ask for a shorter range.',
    );
  }
}
