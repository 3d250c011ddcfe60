import type pg from 'pg';
import { unfitEvents } from '../events.js';

/** Runs SQL as somebody who sees every tenant. */
export interface RecordReader {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
}

interface Rule {
  what: string;
  /** Gives one row for each violation, with its `id`. */
  sql: string;
}

const TERMINAL = `('completed', 'failed', 'canceled')`;
const TERMINAL_EVENTS = `('message.completed', 'message.error', 'message.canceled')`;

/** What holds at every moment, whatever is in flight. */
const ALWAYS: Rule[] = [
  {
    what: 'states are those that there are',
    sql: `SELECT message_id AS id FROM messages
       WHERE state NOT IN ('submitted', 'working', 'input-required', 'completed', 'failed', 'canceled')
      UNION ALL SELECT dispatch_id FROM dispatches
       WHERE state NOT IN ('open', 'sent', 'completed', 'failed', 'input_required', 'canceled', 'lost', 'released')
      UNION ALL SELECT session_id FROM sessions WHERE status NOT IN ('active', 'completed', 'expired')
      UNION ALL SELECT event_id FROM events WHERE severity NOT IN ('info', 'warning', 'critical')`,
  },
  {
    what: 'every row has what it belongs to, of the same tenant',
    sql: `SELECT session_id AS id FROM sessions WHERE NOT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = sessions.tenant_id)
      UNION ALL SELECT message_id FROM messages m WHERE NOT EXISTS (
        SELECT 1 FROM sessions s WHERE s.tenant_id = m.tenant_id AND s.session_id = m.session_id)
      UNION ALL SELECT session_id FROM session_agents j WHERE NOT EXISTS (
        SELECT 1 FROM sessions s WHERE s.tenant_id = j.tenant_id AND s.session_id = j.session_id)
      UNION ALL SELECT dispatch_id FROM dispatches d WHERE NOT EXISTS (
        SELECT 1 FROM messages m WHERE m.tenant_id = d.tenant_id AND m.message_id = d.message_id)`,
  },
  {
    what: 'a message has its terminal event exactly when it has ended, once, and of the kind that fits its state',
    sql: `SELECT m.message_id AS id FROM messages m
      LEFT JOIN events e ON e.tenant_id = m.tenant_id AND e.session_id = m.session_id
        AND e.payload->>'message_id' = m.message_id AND e.event_type IN ${TERMINAL_EVENTS}
      GROUP BY m.tenant_id, m.message_id, m.state
      HAVING count(e.event_id) <> (CASE WHEN m.state IN ${TERMINAL} THEN 1 ELSE 0 END)
        OR bool_or(e.event_type <> CASE m.state WHEN 'completed' THEN 'message.completed'
                                                WHEN 'failed' THEN 'message.error' ELSE 'message.canceled' END)`,
  },
  {
    what: 'a message was received once',
    sql: `SELECT m.message_id AS id FROM messages m
      LEFT JOIN events e ON e.payload->>'message_id' = m.message_id AND e.event_type = 'message.received'
      GROUP BY m.tenant_id, m.message_id HAVING count(e.event_id) <> 1`,
  },
  {
    what: 'a completed message has exactly one dispatch whose result completed it, or the approval of an answer that was held; any other has none',
    sql: `SELECT m.message_id AS id FROM messages m CROSS JOIN LATERAL (SELECT count(*) AS completed FROM dispatches d
        WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id AND d.state = 'completed') d
      WHERE d.completed <> (CASE WHEN m.state = 'completed' THEN 1 ELSE 0 END) AND NOT (m.state = 'completed' AND d.completed = 0
        AND EXISTS (SELECT 1 FROM input_requests q WHERE q.tenant_id = m.tenant_id AND q.message_id = m.message_id AND q.stage = 'output'
          AND q.answer ->> 'resolution' = 'approved'))`,
  },
  {
    what: 'a message has one open dispatch at most, and it is the current one',
    sql: `SELECT d.message_id AS id FROM dispatches d LEFT JOIN running_messages r USING (tenant_id, message_id)
      WHERE d.state IN ('open', 'sent') GROUP BY d.tenant_id, d.message_id, r.current_dispatch_id
      HAVING count(*) > 1 OR bool_or(d.dispatch_id IS DISTINCT FROM r.current_dispatch_id)`,
  },
  {
    what: 'a message is running exactly while it is not over, in the same state',
    sql: `SELECT coalesce(m.message_id, r.message_id) AS id FROM messages m FULL JOIN running_messages r USING (tenant_id, message_id)
      WHERE CASE WHEN m.state IN ${TERMINAL} THEN r.state IS NOT NULL ELSE (r.state, r.session_id, r.instance_id, r.agent_type, r.want_agent_type)
             IS DISTINCT FROM (m.state, m.session_id, m.instance_id, m.agent_type, m.want_agent_type) END`,
  },
  {
    what: 'a dispatch is reported as ended once at most, and only after it was sent',
    sql: `SELECT d.dispatch_id AS id FROM dispatches d
      JOIN events e ON e.payload->>'dispatch_id' = d.dispatch_id AND e.event_type IN ('dispatch.success', 'dispatch.failed')
      GROUP BY d.dispatch_id, d.sent_at, d.state HAVING count(*) > 1 OR d.sent_at IS NULL OR d.state IN ('open', 'sent')`,
  },
  {
    what: 'a dispatch is reported as sent exactly when it was',
    sql: `SELECT d.dispatch_id AS id FROM dispatches d
      LEFT JOIN events e ON e.payload->>'dispatch_id' = d.dispatch_id AND e.event_type = 'dispatch.sent'
      GROUP BY d.dispatch_id, d.sent_at HAVING count(e.event_id) <> (CASE WHEN d.sent_at IS NULL THEN 0 ELSE 1 END)`,
  },
  {
    what: 'one request to a human is open exactly while the message waits for it',
    sql: `SELECT m.message_id AS id FROM messages m WHERE (SELECT count(*) FROM input_requests r
      WHERE r.tenant_id = m.tenant_id AND r.message_id = m.message_id AND r.state = 'pending')
      <> (CASE WHEN m.state = 'input-required' THEN 1 ELSE 0 END)`,
  },
  {
    what: 'a request is rejected, expired, or approved by its quorum, once, exactly when it is resolved or expired',
    sql: `SELECT r.request_id AS id FROM input_requests r CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE d.resolution = 'expired') AS expired,
               count(*) FILTER (WHERE d.resolution IN ('rejected', 'declined')) AS against,
               count(*) FILTER (WHERE d.resolution IN ('approved', 'confirmed', 'submitted') AND d.digest = r.digest) AS favourable
          FROM input_decisions d WHERE d.tenant_id = r.tenant_id AND d.request_id = r.request_id) AS made
      WHERE (expired, against) <> (CASE WHEN r.state = 'expired' THEN 1 ELSE 0 END,
          CASE WHEN r.state = 'resolved' AND r.answer->>'resolution' IN ('rejected', 'declined') THEN 1 ELSE 0 END)
        OR favourable > r.quorum OR r.state = 'resolved' AND against = 0 AND favourable <> r.quorum
        OR r.state <> 'resolved' AND favourable = r.quorum`,
  },
  {
    what: 'the deadline of a dispatch stands still exactly while a tool call of it waits for a human',
    sql: `SELECT d.dispatch_id AS id FROM dispatches d WHERE d.state = 'sent' AND (d.deadline_at IS NULL) <> EXISTS (
      SELECT 1 FROM tool_grants g JOIN input_requests q USING (tenant_id, request_id)
       WHERE g.tenant_id = d.tenant_id AND g.dispatch_id = d.dispatch_id AND q.state = 'pending')`,
  },
  {
    what: 'a tool call that waits, or has waited, is decided exactly when its request is over',
    sql: `SELECT g.request_id AS id FROM tool_grants g LEFT JOIN input_requests q USING (tenant_id, request_id)
      WHERE q.stage IS DISTINCT FROM 'tool' OR (g.decided_at IS NULL) <> (q.state = 'pending') OR g.used_at < g.decided_at`,
  },
  {
    what: 'a message is in the indexes of its session and of its state',
    sql: `SELECT message_id AS id FROM messages WHERE session_uuid IS DISTINCT FROM session_uuid(uuid_of(tenant_id), session_id)
      OR unsuccessful_state IS DISTINCT FROM CASE WHEN state IN ('failed', 'canceled') THEN state END`,
  },
  {
    what: 'a message that has ended holds nothing',
    sql: `SELECT m.message_id AS id FROM messages m LEFT JOIN dispatches d
        ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id AND d.state IN ('open', 'sent')
      WHERE m.state IN ${TERMINAL}
        AND (m.completed_at IS NULL OR d.dispatch_id IS NOT NULL)`,
  },
  {
    what: 'a session that has ended has nothing in flight and says when it ended, once',
    sql: `SELECT s.session_id AS id FROM sessions s
      LEFT JOIN events e ON e.session_id = s.session_id AND e.event_type = 'session.closed'
      WHERE s.status <> 'active' GROUP BY s.tenant_id, s.session_id, s.ended_at
      HAVING s.ended_at IS NULL OR count(e.event_id) <> 1
        OR EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.session_id AND m.state NOT IN ${TERMINAL})`,
  },
  {
    what: 'no agent serves more sessions than it may',
    sql: `SELECT a.instance_id AS id FROM agents a WHERE a.max_concurrent_sessions > 0
      AND counted_sessions(a.tenant_id, a.instance_id) > a.max_concurrent_sessions`,
  },
];

/** What holds once every message has ended and every session of `/sessions/init` is closed. */
const AT_REST: Rule[] = [
  { what: 'every message has ended', sql: `SELECT message_id AS id FROM messages WHERE state NOT IN ${TERMINAL}` },
  { what: 'no dispatch is open', sql: `SELECT dispatch_id AS id FROM dispatches WHERE state IN ('open', 'sent')` },
  {
    what: 'no agent is counted as serving a session',
    sql: `SELECT instance_id AS id FROM agents WHERE counted_sessions(tenant_id, instance_id) <> 0`,
  },
];

/** The events are made of their groups once, and not again for each rule, or for each row of one. */
const EVENTS = 'WITH events AS MATERIALIZED (SELECT * FROM events)';

/** One statement, so that all rules look at the same moment. */
async function violations(reader: RecordReader, rules: Rule[]): Promise<string[]> {
  const parts = rules.map(({ sql }, index) => `SELECT ${index} AS rule, found.id FROM (${sql}) AS found`);
  const rows = await reader.query<{ rule: number; id: string }>(`${EVENTS}\n${parts.join('\nUNION ALL\n')}`);
  return rows.map(({ rule, id }) => `broken for ${id}: ${rules[rule]?.what}`);
}

/** What of the record contradicts itself right now; empty when nothing does. */
export async function contradictions(reader: RecordReader): Promise<string[]> {
  return [...(await violations(reader, ALWAYS)), ...(await unfitEvents(reader))];
}

/** The same when everything is said to be over, with what is not over. */
export async function leftovers(reader: RecordReader): Promise<string[]> {
  return [...(await violations(reader, [...ALWAYS, ...AT_REST])), ...(await unfitEvents(reader))];
}
