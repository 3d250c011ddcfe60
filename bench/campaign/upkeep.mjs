/** What operators do while a campaign runs: an old month is dropped, messages are erased, and the secret key is rotated. */
import { setTimeout as delay } from 'node:timers/promises';
import { every, randomOf } from '../harness/cluster/pace.mjs';
import { readMessage } from '../harness/cluster/record.mjs';
import { connectDatabase, withDatabase } from '../harness/database.mjs';
import { fleet } from '../harness/tenants.mjs';
import { parseText } from './messages.mjs';

/** Settings of the nodes: at the next start of one, what is older is dropped. */
export const RETENTION = { MESSAGE_RETENTION_DAYS: '31', EVENT_RETENTION_DAYS: '31' };
const PREFIXES = { messages: 'msg', dispatches: 'dsp', event_groups: null, event_positions: null };
/** Nobody else is of this tenant. */
const PAST_TENANT = 'ten_00000000-0000-7000-8000-000000000000';
const OLD_MESSAGES = 50;

const ROTATED_AT = 0.15;
const ERASURES = 40;
/** More often than this no message is erased, since each order is a process of its own. */
const ERASED_EVERY_MS = 4_000;
const ATTEMPTS_MAX = 5;
const REPEATED_AFTER_MS = 1_000;
/** Tables in which a message has left nothing. */
const ERASED_FROM = [
  'messages',
  'running_messages',
  'dispatches',
  'input_requests',
  'callback_tokens',
  'push_configs',
  'trace_spans',
];

const [year, month] = [new Date().getUTCFullYear(), new Date().getUTCMonth()];
const firstOf = (monthsAgo) => new Date(Date.UTC(year, month - monthsAgo, 1)).toISOString().slice(0, 10);
const suffix = firstOf(3).slice(0, 7).replace('-', '_');

/** The partitions of the old month, by table. */
export const OLD_PARTITIONS = Object.fromEntries(Object.keys(PREFIXES).map((table) => [table, `${table}_${suffix}`]));

/** Ends the oldest partition of a table at the beginning of this month, and adds one for what is older. */
async function addPartition(client, table, prefix) {
  const { rows } = await client.query("SELECT name, upper_bound FROM partitions_of($1) WHERE lower_bound = ''", [
    table,
  ]);
  const [{ name, upper_bound: end }] = rows;
  const bound = (await client.query('SELECT id_bound($1, $2::date) AS bound', [prefix, firstOf(0)])).rows[0].bound;
  await client.query('BEGIN');
  await client.query(`ALTER TABLE public.${table} DETACH PARTITION public.${name}`);
  await client.query(
    `CREATE TABLE public.${OLD_PARTITIONS[table]} PARTITION OF public.${table} FOR VALUES FROM (MINVALUE) TO ('${bound}')`,
  );
  await client.query(
    `ALTER TABLE public.${table} ATTACH PARTITION public.${name} FOR VALUES FROM ('${bound}') TO ('${end}')`,
  );
  await client.query('COMMIT');
}

const UUID = `left(head, 8) || '-' || right(head, 4) || '-7000-8000-' || lpad(n::text, 12, '0')`;
const OLD_ROWS = `
  SELECT ${UUID} AS id, at FROM (SELECT n, at, lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') AS head
    FROM generate_series(1, ${OLD_MESSAGES}) n, (SELECT $2::date + interval '14 days' AS at) t) made`;
const OLD_INSERTS = [
  `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, deadline_ms, state, created_at,
      updated_at, completed_at)
    SELECT $1, 'msg_' || id, 'ses_past', session_uuid(uuid_of($1), 'ses_past'), 'cred_past', id, 'message/send', '[]', 1000, 'completed', at, at, at FROM (${OLD_ROWS}) r`,
  `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state, created_at,
      sent_at, ended_at)
    SELECT $1, 'dsp_' || id, 'msg_' || id, 'past', 'past', 'connected', 1, 1, 'completed', at, at, at FROM (${OLD_ROWS}) r`,
  // As of a transaction long ago, which the sequencer of events does not look at.
  `INSERT INTO event_groups (transaction_id, tenant_id, types, group_id, session_uuid, session_name, message_id, occurred_at, events)
    SELECT '3', uuid_of($1), event_bit('message.completed'), id::uuid, session_uuid(uuid_of($1), 'ses_past'), 'ses_past', id::uuid, at, '[{"duration_ms": 5}]' FROM (${OLD_ROWS}) r`,
];

export class Upkeep {
  /** What was erased: the messages as they were on the record, by id, and the ids of their events. */
  erased = { messages: new Map(), eventIds: new Set() };
  rotations = 0;
  /** Commands that failed at first, and why. */
  repeated = [];
  #cluster;
  #tenants;
  #env;

  /** @param nextKey the secret key that every node has beside the one in use */
  constructor(cluster, tenants, nextKey) {
    this.#cluster = cluster;
    this.#tenants = tenants;
    this.#env = {
      DATABASE_URL: cluster.dev.database_url,
      FLEET_SECRET_KEY: nextKey,
      FLEET_PREVIOUS_SECRET_KEY: cluster.secretKey,
    };
  }

  /** Puts a month on the record that is older than what is kept. */
  addOldMonth() {
    return withDatabase(this.#cluster.dev.database_url, async (client) => {
      for (const [table, prefix] of Object.entries(PREFIXES)) await addPartition(client, table, prefix);
      for (const insert of OLD_INSERTS) await client.query(insert, [PAST_TENANT, firstOf(3)]);
    });
  }

  /** Erases messages and rotates the key until the signal aborts and both have ended. */
  async run(runMs, signal) {
    const database = await connectDatabase(this.#cluster.dev.database_url);
    try {
      await Promise.all([
        delay(runMs * ROTATED_AT).then(() => this.#rotate()),
        every(Math.max(ERASED_EVERY_MS, runMs / ERASURES), signal, () => this.#eraseOne(database)),
      ]);
    } finally {
      await database.end();
    }
  }

  /** Runs a command as an operator does: again where it fails, since each may be repeated. */
  async #fleet(args) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fleet(this.#cluster.nodes[0].platform, args, this.#env);
      } catch (error) {
        if (attempt === ATTEMPTS_MAX) throw error;
        this.repeated.push(`fleet ${args.join(' ')}: ${error.stderr ?? error.message}`);
      }
      await delay(REPEATED_AFTER_MS);
    }
  }

  async #rotate() {
    const { unreadable_rows: unreadable } = await this.#fleet(['keys', 'rotate-secret']);
    if (unreadable.length > 0) throw new Error(`the rotation could not read ${JSON.stringify(unreadable)}`);
    this.rotations += 1;
  }

  /** Orders the erasure of a quick message that has ended for its caller, if there is one. */
  async #eraseOne(database) {
    const tenant = randomOf(this.#tenants);
    const ended = [...tenant.accepted].filter(
      ([, { text, answers, pushed }]) => parseText(text).kind === 'quick' && answers.length > 1 && !pushed,
    );
    if (ended.length === 0) return;
    const [id] = randomOf(ended);
    const { rows } = await database.query('SELECT event_id FROM events WHERE tenant_id = $1 AND message_id = $2', [
      tenant.id,
      id,
    ]);
    this.erased.messages.set(id, await readMessage(database, id));
    for (const { event_id } of rows) this.erased.eventIds.add(event_id);
    tenant.accepted.delete(id);
    await this.#fleet(['messages', 'erase', '--tenant', tenant.id, '--message', id, '--wait-seconds', '0']);
  }

  /** @returns violations: what is left of what was erased or dropped */
  async judge(database) {
    const violations = this.rotations === 1 ? [] : ['the secret key was not rotated'];
    const ids = [...this.erased.messages.keys()];
    for (const table of ERASED_FROM) {
      const { rows } = await database.query(`SELECT DISTINCT message_id FROM ${table} WHERE message_id = ANY ($1)`, [
        ids,
      ]);
      violations.push(...rows.map(({ message_id }) => `${message_id} was erased and is in ${table}`));
    }
    const { rows } = await database.query(
      `SELECT 'messages' AS name FROM messages WHERE tenant_id = $1 UNION SELECT 'dispatches' FROM dispatches WHERE tenant_id = $1
       UNION SELECT 'event_groups' FROM event_groups WHERE tenant_id = uuid_of($1)`,
      [PAST_TENANT],
    );
    return [...violations, ...rows.map(({ name }) => `${name} has rows of the month that was dropped`)];
  }
}
