import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { UpdateGuardRequest } from '../../contracts/api/policies/guards.js';
import { GuardCatalog } from '../../policy/guards/guard-catalog.js';
import { until } from '../setup/until.js';
import type { MeshNodeUnderTest } from './mesh-fixture.js';
import { fixture, useMesh } from './use-mesh.js';

/** Made up; in two pieces so that scanners of repositories do not take it for a real one. */
const SECRET = `${'AKI'}AZ7Q3M5N1P9R2T4V6`;

useMesh('a');

let node: MeshNodeUnderTest;
beforeAll(async () => {
  const { policies } = fixture.core;
  policies.start();
  await until(() => policies.unconcerned.confirmedUntilMs > performance.now());
  return () => policies.stop();
});
beforeEach(async () => {
  node = await fixture.node();
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
