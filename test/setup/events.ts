import { PlatformEvent } from '../../contracts/api/telemetry.js';
import type { FreshDatabase } from './database.js';

/** The events on the record that do not have exactly the form that `contracts/events.ts` defines for their type, with the first problem. */
export async function unfitEvents(reader: Pick<FreshDatabase, 'query'>): Promise<string[]> {
  const rows = await reader.query<{ event_id: string; event_type: string; occurred_at: Date; trace_id: string | null }>(
    `SELECT event_id, event_type, event_type AS type, category, source, severity, tenant_id, session_id, trace_id, occurred_at,
       payload AS event FROM events ORDER BY event_id`,
  );
  return rows.flatMap(({ occurred_at, trace_id, ...row }) => {
    const record = { ...row, timestamp: occurred_at.toISOString(), ...(trace_id !== null && { trace_id }) };
    const { error } = PlatformEvent.safeParse(record);
    const [issue] = error?.issues ?? [];
    return issue ? [`${row.event_id} ${row.event_type}: ${issue.path.join('.')} ${issue.message}`] : [];
  });
}
