import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { UpdateGuardRequest } from '../../contracts/api/policies/guards.js';
import { GuardCatalog } from '../../policy/guards/guard-catalog.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';
import { MeshFixture, type MeshNodeUnderTest } from './mesh-fixture.js';

/** Made up; in two pieces so that scanners of repositories do not take it for a real one. */
const SECRET = `${'AKI'}AZ7Q3M5N1P9R2T4V6`;

let database: FreshDatabase;
let fixture: MeshFixture;
let node: MeshNodeUnderTest;
beforeAll(async () => {
  database = await freshDatabase();
  fixture = new MeshFixture(database);
  const { policies } = fixture.core;
  policies.start();
  await until(() => policies.unconcerned.confirmedUntilMs > performance.now());
});
beforeEach(async () => {
  await fixture.reset();
  await fixture.register('a');
  node = await fixture.node();
});
afterAll(async () => {
  await fixture.core.policies.stop();
  await database.drop();
});

const configure = (change: UpdateGuardRequest) =>
  new GuardCatalog(fixture.core.db, (tenantId) => fixture.core.policies.changed(tenantId)).update(
    fixture.tenantId,
    change,
  );

/** A dispatch that is under way, of a tenant whose guards do not look at output. */
async function underWay() {
  const { policies } = fixture.core;
  await policies.decide(fixture.tenantId, { scope: 'dispatch', action: 'dispatch' });
  expect(policies.unconcerned.tenants.has(fixture.tenantId)).toBe(true);
  const { agent } = await node.join('a');
  return node.send(agent);
}

test('a guard that is switched on while a dispatch runs inspects its answer', async () => {
  const { ref, end, dispatch } = await underWay();
  await configure({ guard: 'secrets', enabled: true, decision: 'deny' });
  dispatch.result(`the key is ${SECRET}`);
  await end;
  const message = await fixture.message(ref);
  expect(message).toMatchObject({ state: 'failed', error: { code: 'GUARD_DENIED' }, artifacts: [] });
  expect(await fixture.events('guard.denied')).toMatchObject([{ guard: 'secrets', action: 'output' }]);
});

test('or has it held for a human', async () => {
  const { ref, end, dispatch } = await underWay();
  await configure({ guard: 'secrets', enabled: true, decision: 'require_approval' });
  dispatch.result(`the key is ${SECRET}`);
  await end;
  expect((await fixture.message(ref)).state).toBe('input-required');
});

test('an answer in which it finds nothing is recorded as it is', async () => {
  const { ref, end, dispatch } = await underWay();
  await configure({ guard: 'secrets', enabled: true, decision: 'deny' });
  dispatch.result('hello');
  await end;
  expect(await fixture.message(ref)).toMatchObject({ state: 'completed', assistant_output: 'hello' });
});

test('one that is switched off lets the answer pass', async () => {
  await configure({ guard: 'secrets', enabled: true, decision: 'deny' });
  const { agent } = await node.join('a');
  const { ref, end, dispatch } = await node.send(agent);
  await configure({ guard: 'secrets', enabled: false });
  dispatch.result(`the key is ${SECRET}`);
  await end;
  expect((await fixture.message(ref)).state).toBe('completed');
});
