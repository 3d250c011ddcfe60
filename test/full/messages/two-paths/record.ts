import type { FreshDatabase } from '../../../setup/database.js';

/**
 * Everything that lasts. Not compared:
 * - times, and what serves only to get a message moved (leases, wake-ups);
 * - dispatches that were taken back (`released`), with their events and their share in `attempts`: nothing of them reached an agent, which the
 *   script checks. How many there are is the one difference between the paths. The fast path opens a dispatch in the accept transaction, as
 *   sent, so it takes one back where the workflow path had not opened any yet (the answer of accept was lost) or had none that was marked
 *   (no events);
 * - `mesh_id` and `epoch` of dispatches, which name processes and connections;
 * - events of agents, which both paths leave to the mesh.
 */
const RECORD = {
  messages: `
    SELECT m.message_id, m.session_id, m.client_message_id, m.state, m.method, m.parts, m.metadata, m.turns, m.want_agent_type,
           m.instance_id, m.agent_type, m.artifacts, m.status_message, m.usage, m.error_code, m.error_message, m.deadline_ms, r.resolution,
           r.remote_task_id, r.holds_slot, r.unrouted_since IS NULL AS routed, m.completed_at IS NULL AS going_on,
           m.started_at IS NOT NULL AND EXISTS (SELECT 1 FROM dispatches d WHERE d.message_id = m.message_id AND d.state <> 'released') AS started,
           r.attempts - (SELECT count(*) FROM dispatches d WHERE d.message_id = m.message_id AND d.state = 'released') AS attempts
      FROM messages m LEFT JOIN running_messages r USING (tenant_id, message_id) WHERE tenant_id = $1 ORDER BY m.created_at`,
  idempotency_keys: `
    SELECT m.message_id, m.client_message_id FROM idempotency_keys k
      JOIN messages m ON m.tenant_id = $1 AND m.message_id = 'msg_' || k.message_id
     WHERE k.tenant_id = uuid_of($1) ORDER BY m.created_at`,
  sessions: `
    SELECT session_id, explicit, suspended, agent_type, instance_id, status, idle_timeout_seconds, ended_reason, ended_at IS NULL AS going_on
      FROM sessions WHERE tenant_id = $1 ORDER BY created_at`,
  session_agents: `
    SELECT session_id, j.agent_type, j.instance_id, j.join_reason FROM session_members j JOIN sessions s USING (tenant_id, session_id)
     WHERE tenant_id = $1 ORDER BY s.created_at, j.joined_at`,
  dispatches: `
    SELECT d.dispatch_id, message_id, m.session_id, d.instance_id, d.agent_type, d.deployment_mode, d.skill_id, d.state, d.error_code,
           d.sent_at IS NOT NULL AS sent
      FROM dispatches d JOIN messages m USING (tenant_id, message_id)
     WHERE tenant_id = $1 AND d.state <> 'released' ORDER BY m.created_at, d.created_at`,
  input_requests: `
    SELECT r.request_id, message_id, r.session_id, r.kind, r.source, r.stage, r.title, r.prompt, r.state, r.answer
      FROM input_requests r JOIN messages m USING (tenant_id, message_id) WHERE tenant_id = $1 ORDER BY m.created_at, r.requested_at`,
  input_decisions: `
    SELECT request_id, message_id, principal_type, principal_id, resolution, digest, comment FROM input_decisions WHERE tenant_id = $1
     ORDER BY decided_at`,
  events: `
    SELECT e.event_type, e.category, e.source, e.severity, e.session_id, e.payload - 'duration_ms' AS payload,
           e.message_id AS of_message
      FROM events e LEFT JOIN dispatches d ON d.tenant_id = e.tenant_id AND d.dispatch_id = e.payload->>'dispatch_id'
     WHERE e.tenant_id = $1 AND e.session_id <> '' AND coalesce(d.state, '') <> 'released'
     ORDER BY e.occurred_at,
       -- Events of one transaction have one time; the accept transaction writes two that the workflow path writes one after the other.
       CASE e.event_type WHEN 'message.received' THEN 0 WHEN 'dispatch.sent' THEN 1 WHEN 'dispatch.failed' THEN 2
                         WHEN 'dispatch.success' THEN 2 ELSE 3 END, e.event_type`,
} as const;

type Row = Record<string, unknown>;

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Events of each message in their order, and those of sessions that are of no message. */
function byMessage(events: Row[]): Row {
  const grouped: Record<string, Row[]> = {};
  for (const { of_message, ...event } of events) {
    const key = String(of_message ?? 'of no message');
    grouped[key] = [...(grouped[key] ?? []), event];
  }
  return grouped;
}

/** What a script has left on the record of its tenant, each identifier replaced by a number in the order of their first mention. */
export async function lastingRecord(database: FreshDatabase, tenantId: string): Promise<unknown> {
  const tables: Row = {};
  for (const [table, sql] of Object.entries(RECORD)) {
    const rows = await database.query<Row>(sql, [tenantId]);
    tables[table] = table === 'events' ? byMessage(rows) : rows;
  }
  const numbers = new Map<string, number>();
  const numbered = JSON.stringify(tables).replaceAll(UUID, (uuid) => {
    if (!numbers.has(uuid)) numbers.set(uuid, numbers.size);
    return `#${numbers.get(uuid)}`;
  });
  return JSON.parse(numbered);
}
