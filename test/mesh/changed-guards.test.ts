import { beforeAll, beforeEach, expect, test } from 'vitest';
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

/** A dispatch that is under way, of a tenant whose guards do not look at output. */
async function underWay() {
  const { policies } = fixture.core;
  await policies.decide(fixture.tenantId, { scope: 'dispatch', action: 'dispatch' });
  expect(policies.unconcerned.tenants.has(fixture.tenantId)).toBe(true);
  const { agent } = await node.join('a');
  return node.send(agent);
}

test.each([
  ['inspects its answer', 'deny', `the key is ${SECRET}`, 'failed'],
  ['has it held for a human', 'require_approval', `the key is ${SECRET}`, 'input-required'],
  ['lets an answer in which it finds nothing pass', 'deny', 'hello', 'completed'],
] as const)('a guard that is switched on while a dispatch runs %s', async (_what, decision, answer, state) => {
  const { ref, end, dispatch } = await underWay();
  await fixture.guard({ guard: 'secrets', enabled: true, decision });
  dispatch.result(answer);
  await end;
  const message = await fixture.message(ref);
  expect(message.state).toBe(state);
  if (state === 'completed') expect(message.assistant_output).toBe('hello');
  if (state !== 'failed') return;
  expect(message).toMatchObject({ error: { code: 'GUARD_DENIED' }, artifacts: [] });
  expect(await fixture.events('guard.denied')).toMatchObject([{ guard: 'secrets', action: 'output' }]);
});

test('one that is switched off lets the answer pass', async () => {
  await fixture.guard({ guard: 'secrets', enabled: true, decision: 'deny' });
  const { agent } = await node.join('a');
  const { ref, end, dispatch } = await node.send(agent);
  await fixture.guard({ guard: 'secrets', enabled: false });
  dispatch.result(`the key is ${SECRET}`);
  await end;
  expect((await fixture.message(ref)).state).toBe('completed');
});
