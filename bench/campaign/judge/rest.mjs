/** What is still under way after a campaign: everything must have ended, or wait for a stated reason. */
import { setTimeout as delay } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { OLD_PARTITIONS as OLD } from '../upkeep.mjs';

const LOOK_MS = 1_000;
/**
 * Nothing may change for so long: longer than a dead node takes to be noticed, its leases to run out, and deliveries to be repeated. A queue
 * that a slow machine is still working off is waited for.
 */
const STALLED_MS = 120_000;

/**
 * One query for each kind of thing that may be left: gives what it is, without what waits for a stated reason.
 *   - A message may wait for a human whose request is open to be answered.
 *   - The running row of a canceled message stays for ten minutes.
 *   - A session that is not over has a time at which its end is looked at.
 */
const LEFT = {
  'messages that have not ended': `
    SELECT m.message_id || ' is ' || m.state FROM messages m WHERE m.state NOT IN ('completed', 'failed', 'canceled')
       AND NOT (m.state = 'input-required' AND EXISTS (SELECT 1 FROM input_requests r WHERE r.tenant_id = m.tenant_id
         AND r.message_id = m.message_id AND r.state = 'pending' AND r.expires_at > now()))`,
  'running rows without a message at work': `
    SELECT r.message_id || ' is ' || m.state FROM running_messages r LEFT JOIN messages m USING (tenant_id, message_id)
     WHERE m.state IS DISTINCT FROM r.state OR r.state IN ('completed', 'failed')
        OR r.state = 'canceled' AND m.completed_at < now() - interval '15 minutes'`,
  'messages at work without a running row': `
    SELECT m.message_id || ' is ' || m.state FROM messages m WHERE m.state NOT IN ('completed', 'failed', 'canceled')
       AND NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = m.tenant_id AND r.message_id = m.message_id)`,
  'dispatches that have not ended': `
    SELECT d.dispatch_id || ' of ' || d.message_id || ' is ' || d.state FROM dispatches d WHERE d.state IN ('open', 'sent')`,
  'requests without a message that waits': `
    SELECT r.request_id || ' of ' || r.message_id FROM input_requests r LEFT JOIN messages m USING (tenant_id, message_id)
     WHERE r.state = 'pending' AND m.state IS DISTINCT FROM 'input-required'`,
  'grants that nobody can decide': `
    SELECT g.request_id || ' of ' || g.message_id FROM tool_grants g JOIN running_messages w USING (tenant_id, message_id)
      LEFT JOIN input_requests r USING (tenant_id, request_id)
     WHERE g.decided_at IS NULL AND w.state NOT IN ('completed', 'failed', 'canceled') AND r.state IS DISTINCT FROM 'pending'`,
  'slots that nobody uses': `
    SELECT r.message_id FROM running_messages r WHERE r.holds_slot AND r.state IN ('input-required', 'canceled')`,
  'sessions that nobody ends': `
    SELECT s.session_id FROM sessions s WHERE s.status = 'active' AND s.idle_check_at IS NULL AND s.supervised_at IS NULL`,
  deliveries: `SELECT delivery_id || ' is ' || status FROM deliveries WHERE status <> 'delivered'`,
  'receivers that are thought to be away': `SELECT receiver FROM receiver_breakers WHERE open_until IS NOT NULL`,
  'queued deliveries': `SELECT queue_id FROM delivery_queue`,
  'changes that nobody was notified of': `SELECT message_id || ': ' || state FROM push_changes`,
  'plans and their steps, which no campaign makes': `
    SELECT plan_id || ' is ' || state FROM plans UNION ALL SELECT plan_id || ' ' || step_id || ' is ' || state FROM plan_steps
    UNION ALL SELECT plan_id FROM plan_wakes`,
  'documents, of which no campaign has any': `
    SELECT job_id || ' is ' || state FROM knowledge_documents UNION ALL SELECT job_id || ' is ' || status FROM knowledge_jobs`,
  'offered dispatches': `SELECT dispatch_id FROM dispatch_transfers`,
  'unread events': `
    SELECT c.consumer || ' has read up to ' || c.position FROM event_cursors c WHERE EXISTS (SELECT 1 FROM read_events(c.position, NULL, 1))`,
  'partitions that retention drops': `SELECT p.name FROM partitions_of('messages') p WHERE p.name = '${OLD.messages}'
    UNION ALL SELECT p.name FROM partitions_of('dispatches') p WHERE p.name = '${OLD.dispatches}'
    UNION ALL SELECT p.name FROM partitions_of('event_groups') p WHERE p.name = '${OLD.event_groups}'
    UNION ALL SELECT p.name FROM partitions_of('event_positions') p WHERE p.name = '${OLD.event_positions}'`,
  'a rotation of the secret key': `SELECT name FROM platform_facts WHERE name = 'previous_secret_key_check'`,
  'erasures that have not ended': `SELECT erasure_id FROM erasures WHERE finished_at IS NULL`,
};

/** gRPC's UNAVAILABLE: the dev server answers so while it is overloaded. */
const UNAVAILABLE = 14;
const TRIES = 30;

async function openWorkflows(temporal, nextPageToken) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await temporal.workflowService.listOpenWorkflowExecutions({ namespace: 'default', nextPageToken });
    } catch (error) {
      if (error.code !== UNAVAILABLE || tries === TRIES) throw error;
      await delay(1_000);
    }
  }
}

/** Workflows that run although their message has ended; those of canceled messages may still tell the agent. */
async function workflowsLeft(temporal, database) {
  const { rows } = await database.query('SELECT tenant_id, message_id FROM running_messages');
  const running = new Set(rows.map(({ tenant_id, message_id }) => `message:${tenant_id}:${message_id}`));
  const left = [];
  for (let nextPageToken; ; ) {
    const page = await openWorkflows(temporal, nextPageToken);
    left.push(
      ...page.executions.map(({ execution }) => execution).filter(({ workflowId }) => !running.has(workflowId)),
    );
    nextPageToken = page.nextPageToken;
    if (!nextPageToken?.length) return left;
  }
}

/** What may hold up the rest, to find the cause. */
const CAUSES = {
  'the database': `
    SELECT jsonb_build_object('application', application_name, 'state', state, 'wait', wait_event, 'since', now() - xact_start, 'query', left(query, 120))
      FROM pg_stat_activity WHERE xact_start < now() - interval '5 s'`,
  'a breaker': `SELECT to_jsonb(b) FROM receiver_breakers b`,
  'a slot': `SELECT jsonb_build_object('queue_id', queue_id, 'starts', starts, 'since', now() - started_at) FROM delivery_queue WHERE started_at IS NOT NULL`,
  'the sequencer': `SELECT jsonb_build_object('newest', max(last_position), 'age', now() - max(positioned_at)) FROM event_batches`,
};

/** @returns the rows of these statements, in lines */
async function read(database, statements) {
  const lines = [];
  for (const [what, statement] of Object.entries(statements)) {
    const { rows } = await database.query({ text: statement, rowMode: 'array' });
    lines.push(...rows.map(([row]) => `${what}: ${typeof row === 'string' ? row : JSON.stringify(row)}`));
  }
  return lines;
}

/** @returns what is left: lines, and executions of workflows */
async function leftNow(database, temporal) {
  return { lines: await read(database, LEFT), workflows: await workflowsLeft(temporal, database) };
}

/** What a workflow waits for, to find the cause: its pending activities, and the last events of its history. */
async function describe(temporal, execution) {
  const { workflowService: service } = temporal;
  const of = { namespace: 'default', execution };
  const { pendingActivities } = await service.describeWorkflowExecution(of);
  const { history } = await service.getWorkflowExecutionHistoryReverse({ ...of, maximumPageSize: 8 });
  const pending = pendingActivities.map(({ activityType, attempt, lastFailure }) => ({
    activity: activityType.name,
    attempt,
    failure: lastFailure?.message,
  }));
  const events = history.events.map(({ eventType, eventTime }) => [
    eventType,
    new Date(Number(eventTime.seconds) * 1_000),
  ]);
  return JSON.stringify({ pending, events });
}

/** What is left, in lines, and what may be the cause. */
async function explain(database, temporal, { lines, workflows }) {
  const described = await Promise.all(
    workflows.map(async (execution) => `workflows: ${execution.workflowId} ${await describe(temporal, execution)}`),
  );
  return [...lines, ...described, ...(await read(database, CAUSES))];
}

/** Things that a line names. */
const LOGGED_MAX = 5;
const LOGGED_EVERY_MS = 30_000;

/**
 * Waits until nothing is left to do, and `also` holds. `log` gets a line about what is left every half minute.
 * @returns violations: what is left when it has not become less for two minutes
 */
export async function judgeRest(database, temporalAddress, { also, log }) {
  const temporal = await Connection.connect({ address: temporalAddress, connectTimeout: '60s' });
  try {
    let least = Number.POSITIVE_INFINITY;
    let loggedAt = performance.now();
    for (let deadline = performance.now(); ; await delay(LOOK_MS)) {
      const left = await leftNow(database, temporal);
      const count = left.lines.length + left.workflows.length;
      if (count === 0 && (await also())) return [];
      if (count < least) deadline = performance.now() + STALLED_MS;
      least = Math.min(least, count);
      if (performance.now() > loggedAt + LOGGED_EVERY_MS) {
        loggedAt = performance.now();
        const shown = left.lines.slice(0, LOGGED_MAX).join('; ');
        log(`${left.lines.length} things and ${left.workflows.length} workflows are left: ${shown}`);
      }
      if (performance.now() > deadline) return explain(database, temporal, left);
    }
  } finally {
    await temporal.close();
  }
}
