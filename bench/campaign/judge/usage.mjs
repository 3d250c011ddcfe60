/** Compares the usage report of each tenant, and the totals of its sessions, with the record. */
import { FleetClient } from '../../../dist/sdk/index.js';

/** Sessions of each tenant whose totals are compared, one by one. */
const SESSIONS_COMPARED = 25;
/** A process that is killed loses the tool calls that it counted last (docs/usage.md). A second is twice their time. */
const COUNTS_LOST_MS = 1_000;
/** States of dispatches that have not ended, or of which nothing went out; what was canceled before it was sent does not count either. */
const UNCOUNTED = ['open', 'sent', 'released'];
const isCounted = ({ state, sent_at }) => sent_at !== null && !UNCOUNTED.includes(state);

const sum = (values) => values.reduce((total, value) => total + value, 0);

function expectedTotals(rows) {
  const tokens = (member) => sum(rows.map(({ usage }) => usage?.[member] ?? 0));
  return {
    messages: rows.length,
    dispatches: sum(rows.map((row) => row.dispatches.filter(isCounted).length)),
    input_tokens: tokens('input_tokens'),
    output_tokens: tokens('output_tokens'),
  };
}

/** Bounds of the tool calls: those that came just before a kill may be missing, those that an agent never got may be counted. */
function judgeToolCalls(counted, tenant, journal, faults) {
  const calls = journal.toolCallTimes.get(tenant.id) ?? [];
  const kills = [...faults.nodes.values()];
  const lost = calls.filter((atMs) =>
    kills.some((killMs) => atMs > killMs - COUNTS_LOST_MS && atMs <= killMs + COUNTS_LOST_MS),
  );
  const failed = sum([...journal.toolFailures.values()].map((failures) => failures.length));
  if (counted >= calls.length - lost.length && counted <= calls.length + failed) return [];
  return [
    `${tenant.id}: usage has ${counted} tool calls, agents got ${calls.length}, ${lost.length} of them at a kill`,
  ];
}

/** @param incomplete sessions whose messages are not all kept */
async function judgeSessions(client, tenant, incomplete) {
  const query = { group_by: 'session', page_size: SESSIONS_COMPARED, range: '24h' };
  const { rows } = await client.post('/telemetry/get_usage', query);
  const violations = [];
  for (const { session, messages, total_tokens } of rows) {
    if (incomplete.has(session)) continue;
    const body = { session_id: session };
    const answer = await client.post('/sessions/get_by_id', body);
    const { total_turns, total_tokens: tokens } = answer.session;
    if (total_turns !== messages || tokens !== total_tokens)
      violations.push(
        `${tenant.id}: ${session} has ${total_turns} turns and ${tokens} tokens, in usage ${messages} and ${total_tokens}`,
      );
  }
  if (rows.length === 0) violations.push(`${tenant.id}: usage has no sessions`);
  return violations;
}

/** @param erased messages as they were on the record @returns violations */
export async function judgeUsage(tenants, record, journal, faults, erased) {
  const incomplete = new Set(erased.map(({ session_id }) => session_id));
  const violations = [];
  for (const tenant of tenants) {
    const client = new FleetClient(tenant.access[0]);
    try {
      const { totals } = await client.post('/telemetry/get_usage', { summary: true, range: '24h' });
      const expected = expectedTotals([...record, ...erased].filter(({ tenant_id }) => tenant_id === tenant.id));
      for (const [name, value] of Object.entries(expected))
        if (totals[name] !== value)
          violations.push(`${tenant.id}: usage has ${totals[name]} ${name}, the record ${value}`);
      violations.push(
        ...judgeToolCalls(totals.tool_calls, tenant, journal, faults),
        ...(await judgeSessions(client, tenant, incomplete)),
      );
    } finally {
      client.destroy();
    }
  }
  return violations;
}
