import { MockActivityEnvironment } from '@temporalio/testing';
import { beforeEach, expect, test } from 'vitest';
import { createWatchActivities } from '../../activities/watch.js';
import { openDb } from '../../db/pool.js';
import { createOutbound } from '../../http/outbound.js';
import { Registry } from '../../mesh/connection/connection.js';
import { MeshNode } from '../../mesh/nodes/node.js';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { httpServer } from '../runtime/loopback-server.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { useUpTurns } from '../setup/used-up-turns.js';

const database = await freshDatabase();
const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
cleanUp(() => outbound.close());
const core = messageCore(database.db());
let tenant: string;
beforeEach(async () => {
  await database.query('DELETE FROM mesh_nodes');
  await database.query('DELETE FROM agents');
  tenant = await insertTenant(database);
});

/** One round, as the Temporal Schedule runs it. */
async function round(db = core.db): Promise<{ probed: number; unhealthy: number; reaped: number }> {
  const { watchAgents } = createWatchActivities({ db, outbound, log: core.log });
  return new MockActivityEnvironment().run(watchAgents);
}

async function agent(instance_id: string, silentSeconds: number, public_url: string | null = null): Promise<void> {
  const last_seen = new Date(Date.now() - silentSeconds * 1_000);
  const row = { tenant_id: tenant, instance_id, max_concurrent_sessions: 1, last_seen, public_url };
  await insertAgent(database, { ...row, mesh_id: public_url ? null : 'mesh_1' });
}

async function nodeUpFor(seconds: number): Promise<void> {
  await database.query(
    `INSERT INTO mesh_nodes (mesh_id, started_at) VALUES ('mesh_1', now() - $1 * interval '1 second')`,
    [seconds],
  );
}

async function seen(instance: string): Promise<{ status: string; deregistered: boolean; events: string[] }> {
  const [row] = await database.query<{ status: string; deregistered: boolean }>(
    'SELECT status, deregistered_at IS NOT NULL AS deregistered FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [tenant, instance],
  );
  const events = await database.column<string>(
    `SELECT event_type FROM events WHERE tenant_id = $1 AND payload->>'instance_id' = $2 ORDER BY occurred_at`,
    [tenant, instance],
  );
  const { status = '', deregistered = false } = row ?? {};
  return { status, deregistered, events };
}

/** A hosted agent's server; `up` decides whether it shows its card. */
async function cardServer(up: boolean): Promise<string> {
  const server = await httpServer((_request, response) => {
    response.writeHead(up ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify({ name: 'agent' }));
  });
  return `${server.url}/`;
}

test('an agent without a sign of life for 90 s becomes unhealthy, one that gave a sign does not', async () => {
  await nodeUpFor(5);
  await agent('silent', 100);
  await agent('lively', 80);
  expect(await round()).toMatchObject({ unhealthy: 1, reaped: 0 });
  expect(await seen('silent')).toEqual({ status: 'unhealthy', deregistered: false, events: ['agent.health_changed'] });
  expect(await seen('lively')).toEqual({ status: 'available', deregistered: false, events: [] });
});

test('after ten minutes it is deregistered, and its sessions are unbound', async () => {
  await nodeUpFor(700);
  await agent('gone', 650);
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, agent_type, instance_id, status, idle_timeout_seconds)
     VALUES ($1, 'ses_1', true, 'x', 'gone', 'active', 0)`,
    [tenant],
  );
  expect(await round()).toMatchObject({ reaped: 1 });
  const events = ['agent.health_changed', 'agent.deregistered'];
  expect(await seen('gone')).toEqual({ status: 'offline', deregistered: true, events });
  const [row] = await database.query('SELECT deregistration_cause FROM agents WHERE tenant_id = $1', [tenant]);
  expect(row).toEqual({ deregistration_cause: 'inactivity' });
  const [session] = await database.query('SELECT instance_id FROM sessions WHERE tenant_id = $1', [tenant]);
  expect(session).toEqual({ instance_id: null });
});

test('nobody is reaped by a platform that was down itself', async () => {
  await nodeUpFor(60);
  await agent('waiting', 3_600);
  expect(await round()).toMatchObject({ reaped: 0 });
  expect((await seen('waiting')).deregistered).toBe(false);
});

test('nobody is reaped because the database was away for longer than that', async () => {
  await nodeUpFor(3_600);
  await agent('living', 700);
  const away = "UPDATE mesh_nodes SET renewed_at = now() - interval '700 s' RETURNING mesh_id";
  const meshId = (await database.value<string>(away)) ?? '';
  expect(await round()).toMatchObject({ reaped: 0 }); // it is back, and no node has renewed yet
  const clocks = { ...DEFAULT_CLOCKS, reconcileMs: 60_000 };
  const node = new MeshNode({ db: database.db(), log: core.log, meshId, registry: new Registry(), clocks });
  await node.start();
  cleanUp(() => node.stop());
  expect(await round()).toMatchObject({ reaped: 0 });
  await database.query("UPDATE mesh_nodes SET resumed_at = now() - interval '601 s'");
  expect(await round()).toMatchObject({ reaped: 1 });
});

test('a hosted agent is asked for its card: one that shows it lives on without heartbeats', async () => {
  await nodeUpFor(700);
  await agent('answers', 3_600, await cardServer(true));
  await agent('broken', 60, await cardServer(false));
  expect(await round()).toEqual({ probed: 2, unhealthy: 0, reaped: 0 });
  expect((await seen('answers')).status).toBe('available');
  await round();
  await round();
  expect(await seen('broken')).toMatchObject({ status: 'unhealthy', events: ['agent.health_changed'] });
});

test('a tenant with thousands of silent agents that is busy, and an agent that cannot be changed, hold up no other', async () => {
  await nodeUpFor(700);
  const url = await cardServer(true);
  const busy = await insertTenant(database);
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions, last_seen, mesh_id, public_url)
     SELECT $1, 'busy-' || n, 'worker', CASE n % 2 WHEN 0 THEN 'hosted' ELSE 'connected' END, 'available', 0, now() - interval '1 hour',
            CASE n % 2 WHEN 1 THEN 'mesh_1' END, CASE n % 2 WHEN 0 THEN $2 END FROM generate_series(1, 1100) AS n`,
    [busy, url],
  );
  await database.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'cannot be changed'; END $$`,
  );
  await database.query(
    `CREATE TRIGGER refused BEFORE UPDATE ON agents FOR EACH ROW WHEN (OLD.instance_id = 'cursed') EXECUTE FUNCTION refuse()`,
  );
  cleanUp(() => database.query('DROP FUNCTION refuse() CASCADE'));
  await agent('cursed', 3_000);
  await agent('gone', 2_000);
  await agent('answers', 2_000, url);
  const db = openDb({ url: database.url, turnWaitMs: 100, log: core.log });
  cleanUp(() => db.close());
  const used = await useUpTurns(db, busy);
  expect(await round(db)).toEqual({ probed: 1, unhealthy: 1, reaped: 1 });
  expect((await seen('answers')).status).toBe('available');
  expect(await seen('gone')).toMatchObject({ status: 'offline', deregistered: true });
  expect((await seen('cursed')).status).toBe('available');
  await used.release();
});
