import { expect, test } from 'vitest';
import { touchConnections } from '../../mesh/connection/connection-rows.js';
import { renewLeases } from '../../messages/dispatch/leases.js';
import { WaitingWatch } from '../../messages/supervise/waiting-watch.js';
import { newId } from '../../runtime/ids.js';
import { insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { RowLock } from '../setup/row-lock.js';

const database = await freshDatabase();
const core = messageCore(database.db());
const [locked, free] = [await insertTenant(database), await insertTenant(database)];

async function running(tenant_id: string, columns: Record<string, unknown>) {
  const message = { tenant_id, message_id: newId('msg') };
  const row = { ...message, session_id: newId('ses'), lease_epoch: 0, ...columns };
  const places = Object.keys(row).map((_, index) => `$${index + 1}`);
  await database.query(`INSERT INTO running_messages (${Object.keys(row)}) VALUES (${places})`, Object.values(row));
  return message;
}

/** Statements over rows of several tenants: what they look at, and which rows they have changed since. */
const STATEMENTS: { what: string; table: string; changed: string; prepare: () => Promise<() => Promise<void>> }[] = [
  {
    what: 'signs of life of agents',
    table: 'agents',
    changed: 'last_seen IS NOT NULL',
    prepare: async () => {
      const agents = [locked, free].map((tenant_id) => ({ tenant_id, instance_id: newId('msg'), epoch: 0 }));
      for (const { epoch, ...agent } of agents) await insertAgent(database, agent);
      return () => core.db.system((tx) => touchConnections(tx, agents));
    },
  },
  {
    what: 'leases of messages',
    table: 'running_messages',
    changed: "state = 'working' AND wake_requested_at > to_timestamp(0)",
    prepare: async () => {
      const columns = { state: 'working', wake_requested_at: new Date(0) };
      const messages = [await running(locked, columns), await running(free, columns)];
      return () => renewLeases(core.db, messages);
    },
  },
  {
    what: 'wake-ups of messages whose reminder has passed',
    table: 'running_messages',
    changed: "state = 'input-required' AND wake_requested_at IS NOT NULL",
    prepare: async () => {
      for (const tenant of [locked, free]) {
        const { message_id } = await running(tenant, { state: 'input-required' });
        await database.query(
          `INSERT INTO input_requests (tenant_id, request_id, message_id, session_id, kind, source, stage, title, prompt, digest, state, expires_at)
           VALUES ($1, $2, $3, 'ses_1', 'confirmation', 'agent', 'agent', '', '', '', 'pending', now() - interval '1 hour')`,
          [tenant, newId('req'), message_id],
        );
      }
      const temporal = {
        endedMessages: async function* () {},
        fateOfMessage: async () => 'running' as const,
        wakeMessage: async () => undefined,
      };
      return () => new WaitingWatch(core, temporal).look();
    },
  },
];

test.each(STATEMENTS)('$what: rows that a request of one tenant has locked are passed over', async (statement) => {
  const run = await statement.prepare();
  const lock = await RowLock.on(database.url, `SELECT 1 FROM ${statement.table} WHERE tenant_id = $1`, [locked]);
  await run();
  const changed = async (tenant: string) => {
    const rows = `SELECT 1 FROM ${statement.table} WHERE tenant_id = $1 AND ${statement.changed}`;
    return (await database.query(rows, [tenant])).length;
  };
  expect([await changed(locked), await changed(free)]).toEqual([0, 1]);
  await lock.release();
  await run();
  expect([await changed(locked), await changed(free)]).toEqual([1, 1]);
});
