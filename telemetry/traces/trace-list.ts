import type { GetTracesRequest, TraceSummary } from '../../contracts/api/telemetry.js';
import { type KeyList, type Page, readPage } from '../../db/pages/page.js';
import type { Db, Tx } from '../../db/pool.js';
import { countsOfMessages } from './derive.js';
import type { MessageFacts } from './facts.js';
import { planCounts } from './plan-spans.js';
import { countedDetailsOf, inPortions } from './read-details.js';
import { begunSteps } from './read-facts.js';
import { TraceExtent } from './trace-extent.js';
import { readTraces, STATES_OF, summaryOf } from './traces.js';

type Filters = Pick<GetTracesRequest, 'session_id' | 'status' | 'has_plan'>;

/** Planned with the values, so that the plan has no trace of absent filters. */
const matches = (row: 'm' | 'p') =>
  `${row}.tenant_id = $1 AND ($2::text IS NULL OR ${row}.session_id = $2) AND ($3::text[] IS NULL OR ${row}.state = ANY ($3))`;

const ownMessage = (row: 'm' | 'p') => `EXISTS (SELECT 1 FROM messages o
  WHERE o.tenant_id = ${row}.tenant_id AND o.message_id = message_of_trace(${row}.trace_id) AND o.parent_span_id IS NULL)`;

/** Messages that began a trace (`rootOf` in traces.ts): almost all have no parent, and nothing is looked for. */
const MESSAGES = `messages m WHERE ${matches('m')} AND (m.parent_span_id IS NULL OR NOT (${ownMessage('m')}
    OR EXISTS (SELECT 1 FROM plans p WHERE p.trace_id = m.trace_id AND p.tenant_id = m.tenant_id)
    OR EXISTS (SELECT 1 FROM messages o WHERE o.trace_id = m.trace_id AND o.tenant_id = m.tenant_id AND o.parent_span_id IS NOT NULL
                AND o.message_id < m.message_id)))`;
const WITHOUT_PLAN =
  ' AND NOT EXISTS (SELECT 1 FROM plans p WHERE p.trace_id = trace_of(m.trace_id, m.message_id) AND p.tenant_id = m.tenant_id)';

/** Plans that began a trace. */
const FIRST_PLAN = `NOT EXISTS (SELECT 1 FROM plans o WHERE o.trace_id = p.trace_id AND o.tenant_id = p.tenant_id AND o.plan_id < p.plan_id)`;
const PLANS = `plans p WHERE ${matches('p')} AND ${FIRST_PLAN} AND (p.parent_span_id IS NULL OR NOT ${ownMessage('p')})`;

/** The traces that plans are part of, by the first plan of each. Its message may have begun it, and then says session and state. */
const WITH_PLAN = `plans p LEFT JOIN messages o ON o.tenant_id = p.tenant_id AND o.message_id = message_of_trace(p.trace_id)
    AND o.parent_span_id IS NULL AND p.parent_span_id IS NOT NULL
  WHERE p.tenant_id = $1 AND ($2::text IS NULL OR coalesce(o.session_id, p.session_id) = $2)
    AND ($3::text[] IS NULL OR coalesce(o.state, p.state) = ANY ($3)) AND ${FIRST_PLAN}`;

/** The newest rows of each kind that begin a trace. */
function kindsOf({ has_plan }: Filters): { from: string; key: string; row: 'm' | 'p' }[] {
  const plans = { key: 'plan_id', row: 'p' } as const;
  const messages = { key: 'message_id', row: 'm' } as const;
  if (has_plan === true) return [{ ...plans, from: WITH_PLAN }];
  if (has_plan === false) return [{ ...messages, from: `${MESSAGES}${WITHOUT_PLAN}` }];
  return [
    { ...messages, from: MESSAGES },
    { ...plans, from: PLANS },
  ];
}

/** The traces that match, the newest first, as the rows `r`: at most so many ($4) of each kind. */
function newest(filters: Filters): string {
  const kinds = kindsOf(filters).map(
    ({ from, key, row }) =>
      `(SELECT ${row === 'm' ? 'trace_of(m.trace_id, m.message_id) AS trace_id' : 'p.trace_id'}, substr(${row}.${key}, strpos(${row}.${key}, '_')) AS uuid FROM ${from} ORDER BY ${row}.${key} DESC LIMIT $4)`,
  );
  return `(${kinds.join(' UNION ALL ')}) AS r`;
}

function matching(tenantId: string, filters: Filters): KeyList {
  const { session_id = null, status } = filters;
  const values: KeyList['values'] = [tenantId, session_id, status ? STATES_OF[status] : null];
  const [largest] = kindsOf(filters);
  const rows = newest(filters);
  return {
    key: 'trace_id',
    // For the estimate of a long list, which counts the kind that there is most of.
    from: largest?.from ?? '',
    orderBy: 'trace_id',
    values,
    walk: {
      keys: async (tx, values, limit, offset) => {
        const text = `SELECT r.trace_id FROM ${rows} ORDER BY r.uuid COLLATE "C" DESC LIMIT $5 OFFSET $6`;
        const found = await tx.query<{ trace_id: string }>(text, [...values, limit + offset, limit, offset]);
        return found.map(({ trace_id }) => trace_id);
      },
      count: async (tx, values, most) => {
        const [counted] = await tx.query<{ count: number }>(`SELECT count(*) AS count FROM ${rows}`, [
          ...values,
          most + 1,
        ]);
        const count = counted?.count ?? 0;
        return count > most ? null : count;
      },
    },
  };
}

/** Messages whose spans are counted at once. */
const AT_ONCE = 500;

/** Counts the spans of traces: none of tool calls and decisions is read, and no more messages at a time than the process can spare. */
async function summaries(tx: Tx, tenantId: string, traceIds: string[]): Promise<TraceSummary[]> {
  const records = await readTraces(tx, tenantId, traceIds);
  const extents = new Map(traceIds.map((traceId) => [traceId, new TraceExtent()]));
  const begun = await begunSteps(
    tx,
    tenantId,
    records.flatMap(({ plans }) => plans),
  );
  for (const plan of records.flatMap(({ plans }) => plans))
    extents.get(plan.trace_id)?.add(planCounts(plan, begun.get(plan.plan_id) ?? 0));
  const messages = records.flatMap((record) => record.messages);
  const read = (portion: readonly MessageFacts[]) => countedDetailsOf(tx, tenantId, portion);
  for await (const { portion, found } of inPortions(messages, AT_ONCE, read)) {
    const parts = countsOfMessages(portion, found);
    for (const { message_id, trace_id } of portion) {
      const part = parts.get(message_id);
      if (part) extents.get(trace_id)?.add(part);
    }
  }
  return records.flatMap((record) => {
    const extent = extents.get(record.trace_id);
    return extent ? summaryOf(record, extent) : [];
  });
}

/** A page of a tenant's traces, the newest first: by the message or plan that began each. */
export function listTraces(db: Db, tenantId: string, query: GetTracesRequest): Promise<Page<TraceSummary>> {
  return readPage(db, matching(tenantId, query), query, (tx, traceIds) => summaries(tx, tenantId, traceIds));
}
