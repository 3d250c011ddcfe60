import { beforeEach, expect, test } from 'vitest';
import { endSaturation, markSaturated } from '../../../agents/agent-saturation.js';
import { freshDatabase } from '../../setup/database.js';
import { MESH, RecordFixture } from '../../setup/record-fixture.js';

const OTHERS = ['mesh_2', 'mesh_3'];
const NODES = [MESH, ...OTHERS];
const WISH = { agent_type: 'worker' };

const database = await freshDatabase();
const fixture = new RecordFixture(database);
const { db } = fixture.core;
const ref = () => ({ tenant_id: fixture.tenantId, instance_id: 'hosted' });

beforeEach(async () => {
  await fixture.reset();
  const public_url = 'http://192.0.2.1/';
  await fixture.agent('hosted', { public_url, mesh_id: null, max_concurrent_sessions: 0, skills: ['sums'] });
  await database.query('DELETE FROM mesh_nodes');
  await database.query('INSERT INTO mesh_nodes (mesh_id) SELECT unnest($1::text[])', [NODES]);
});

/** Sends a message behind which none waits. @returns the node that is to send it, or that is to hear of it; '' for none */
async function send(wish: object, options: Parameters<typeof fixture.send>[1] = { reachesNodes: true }) {
  const { by, message_id } = await fixture.send(wish, options);
  await fixture.gateway.cancel(fixture.caller, message_id, 'test');
  return by;
}

/** The node that is to hear of a message which a process without agents has accepted; '' for none. */
const hearing = () => send(WISH, { offers: false, reachesNodes: true });

test('a node that has room sends by itself, and a process that is no node tells any', async () => {
  expect(await send(WISH)).toBe(MESH);
  expect(NODES).toContain(await hearing());
});

test.each([[WISH], [{ instance_id: 'hosted' }], [{ skill_id: 'sums' }]])(
  'a node without room has another send a message %j',
  async (wish) => {
    const contextId = await fixture.open('worker', false, false);
    await markSaturated(db, ref(), MESH);
    expect(OTHERS).toContain(await send(wish));
    await markSaturated(db, ref(), 'mesh_2');
    expect(await send(wish)).toBe('mesh_3');
    expect(await send(wish, { reachesNodes: true, contextId })).toBe('mesh_3');
    // One that cannot reach others finds out by itself.
    expect(await send(wish, {})).toBe(MESH);
    expect(await hearing()).toBe('mesh_3');
  },
);

test('a node that is dead, or stops, is not asked, and marks end', async () => {
  await markSaturated(db, ref(), MESH);
  await database.query("UPDATE mesh_nodes SET renewed_at = now() - interval '6 s' WHERE mesh_id = 'mesh_2'");
  expect(await hearing()).toBe('mesh_3');
  await database.query("UPDATE mesh_nodes SET draining = true WHERE mesh_id = 'mesh_3'");
  expect(await hearing()).toBeNull();
  await endSaturation(db, ref(), MESH);
  expect(await send(WISH)).toBe(MESH);
  await database.query('UPDATE agents SET saturated_on = $2 WHERE tenant_id = $1', [
    fixture.tenantId,
    JSON.stringify({ [MESH]: new Date(Date.now() - 1_000) }),
  ]);
  expect(await send(WISH)).toBe(MESH);
});
