import { expect, onTestFinished, test } from 'vitest';
import { openDb } from '../../db/pool.js';
import { createLogger } from '../../runtime/logger.js';
import { freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';
import { useUpTurns } from '../setup/used-up-turns.js';
import { MeshFixture, type MeshNodeUnderTest } from './mesh-fixture.js';

/** More than are registered, or whose rows are written, at once. */
const AGENTS = 12;

/** A tenant of its own, whose agents connect to the node as well. */
async function tenantOn(node: MeshNodeUnderTest) {
  const { fixture } = node;
  const { tenantId, credentialId } = await fixture.newTenant();
  const token = await fixture.token(3_600, { tenant_id: tenantId, credential_id: credentialId });
  const socket = async (instanceId: string) => {
    await fixture.register(instanceId, { tenant_id: tenantId });
    return node.socket(instanceId, { token });
  };
  const agents = (where: string) =>
    fixture.database.query(`SELECT 1 FROM agents WHERE tenant_id = $1 AND ${where}`, [tenantId]);
  return { tenantId, socket, agents };
}

test('agents of a tenant whose turns at the database are used up hold up those of no other', async () => {
  const database = await freshDatabase();
  // Who waits for a turn waits as long as the test takes.
  const db = openDb({ url: database.url, turnWaitMs: 600_000, log: createLogger({ level: 'silent' }) });
  onTestFinished(() => db.close());
  const node = await (await new MeshFixture(database, db).reset()).node();
  const [busy, other] = [await tenantOn(node), await tenantOn(node)];

  const connected = await Promise.all(Array.from({ length: AGENTS }, (_, n) => busy.socket(`old-${n}`)));
  for (const agent of connected) await agent.hello();
  const used = await useUpTurns(db, busy.tenantId);
  for (const agent of connected) agent.send('heartbeat', { max_concurrent_sessions: 7 });
  const coming = await Promise.all(Array.from({ length: AGENTS }, (_, n) => busy.socket(`new-${n}`)));
  for (const agent of coming) agent.send('hello', { instance_id: agent.instanceId });

  const agent = await other.socket('one');
  await agent.hello();
  agent.send('heartbeat', { max_concurrent_sessions: 5 });
  await until(async () => (await other.agents('max_concurrent_sessions = 5')).length === 1);
  agent.kill();
  await until(async () => (await other.agents("status = 'offline'")).length === 1);

  expect(await busy.agents('max_concurrent_sessions = 7')).toEqual([]);
  expect(coming.map((one) => one.count('welcome'))).toEqual(Array(AGENTS).fill(0));
  await used.release();
  await Promise.all(coming.map((one) => one.nextOfType('welcome')));
});
