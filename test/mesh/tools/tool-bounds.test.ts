// @module-tag once
import { expect, it } from 'vitest';
import { database, fixture } from '../use-mesh.js';
import { approvals, b, careful, heldCallOf, node, pays, policyAboutPay, usePayments } from './approval-fixture.js';
import { ask, callTool, ok, resultOf, take } from './tool-fixture.js';

usePayments('pay');

const bounded = (max_calls: number, fields: object = {}) =>
  fixture.policy({
    ...{ scope: 'tool', name: 'bounded', decision: 'allow', match: { tools: ['pay'] }, priority: 1, max_calls },
    ...fields,
  });
const counts = () => database.column('SELECT calls_allowed FROM policy_calls WHERE tenant_id = $1', [fixture.tenantId]);

it('of 50 calls at once a policy allows its 20, and the next one decides about the others', async () => {
  await bounded(20);
  await policyAboutPay('deny', { priority: 2 });
  const { agent: a } = await node.join('a');
  b.onFrame(({ type, id }) => type === 'tool_call' && void b.send('tool_result', ok('paid'), id));
  const results = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(a, { tool: 'pay', arguments: { n } })));
  expect(results.filter((result) => result.ok)).toHaveLength(20);
  expect(results.filter((result) => !result.ok && result.error.code === 'POLICY_DENIED')).toHaveLength(30);
  expect(b.count('tool_call')).toBe(20);
  expect(await counts()).toEqual([20]);
});

it('a repeat with the same key counts once', async () => {
  await bounded(5);
  const { agent: a } = await node.join('a');
  const payload = { tool: 'pay', arguments: {}, idempotency_key: 'k' };
  const [first, second] = [callTool(a, payload), callTool(a, payload)];
  (await take(b, 'pay')).result(ok('paid'));
  expect([await resultOf(a, first), await resultOf(a, second)]).toEqual([ok('paid'), ok('paid')]);
  expect(await counts()).toEqual([1]);
});

it('once it is used up a person is asked, whose approvals are not counted', async () => {
  await bounded(1);
  const { agent: a } = await node.join('a');
  const id = callTool(a, { tool: 'pay', arguments: { amount: 5 } });
  (await take(b, 'pay')).result(ok('paid'));
  expect(await resultOf(a, id)).toEqual(ok('paid'));
  const held = await heldCallOf(a);
  expect(held.request).toMatchObject({ policy_id: careful });
  await bounded(9, { priority: 2 });
  await approvals.resolve(held.ref, 'approved');
  await pays(b, a, held.id);
  expect((await counts()).sort()).toEqual([0, 1]);
});

it('a call that a guard asks about is not counted', async () => {
  await bounded(5);
  await fixture.guard({ guard: 'path', decision: 'require_approval' });
  const { agent: a } = await node.join('a');
  const held = await heldCallOf(a, node, { path: '/srv/../../etc/passwd' });
  expect(held.request).toMatchObject({ source: 'guard' });
  await approvals.resolve(held.ref, 'approved');
  await pays(b, a, held.id);
  expect(await counts()).toEqual([0]);
});
