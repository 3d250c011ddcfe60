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

/** The node that a message's dispatch on the workflow path is for; null: any. */
async function byWorkflow(): Promise<string | null | undefined> {
  const step = await fixture.look(await fixture.queue(WISH));
  return step?.kind === 'dispatch' ? step.mesh_id : undefined;
}

test('a node that has room sends by itself, and any node on the workflow path', async () => {
  expect((await fixture.send(WISH, { anyMesh: true })).by).toBe(MESH);
  expect(await byWorkflow()).toBe(null);
});

test.each([[WISH], [{ instance_id: 'hosted' }], [{ skill_id: 'sums' }]])(
  'a node without room has another send a message %j',
  async (wish) => {
    await markSaturated(db, ref(), MESH);
    expect(OTHERS).toContain((await fixture.send(wish, { anyMesh: true })).by);
    await markSaturated(db, ref(), 'mesh_2');
    const { by, session_id } = await fixture.send(wish, { anyMesh: true });
    expect(by).toBe('mesh_3');
    expect((await fixture.send(wish, { anyMesh: true, contextId: session_id })).by).toBe('mesh_3');
    // One that cannot reach others finds out by itself, and the workflow path then knows.
    expect((await fixture.send(wish)).by).toBe(MESH);
    expect(await byWorkflow()).toBe('mesh_3');
  },
);

test('a node that is dead, or stops, is not asked, and marks end', async () => {
  await markSaturated(db, ref(), MESH);
  await database.query("UPDATE mesh_nodes SET renewed_at = now() - interval '6 s' WHERE mesh_id = 'mesh_2'");
  expect(await byWorkflow()).toBe('mesh_3');
  await database.query("UPDATE mesh_nodes SET draining = true WHERE mesh_id = 'mesh_3'");
  expect(await byWorkflow()).toBe(null);
  await endSaturation(db, ref(), MESH);
  expect((await fixture.send(WISH, { anyMesh: true })).by).toBe(MESH);
  await database.query('UPDATE agents SET saturated_on = $2 WHERE tenant_id = $1', [
    fixture.tenantId,
    JSON.stringify({ [MESH]: new Date(Date.now() - 1_000) }),
  ]);
  expect((await fixture.send(WISH, { anyMesh: true })).by).toBe(MESH);
});
