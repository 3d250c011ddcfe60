import { beforeEach, expect, it } from 'vitest';
import type { FixtureAgent } from '../fixture-agent.js';
import { database, fixture } from '../use-mesh.js';
import { approvals, b, heldCallOf, node, pays, usePayments } from './approval-fixture.js';
import { failing, resultOf, take } from './tool-fixture.js';

usePayments('pay');

let a: FixtureAgent;
beforeEach(async () => {
  a = (await node.join('a')).agent;
});

const outcomes = (request: { request_id: string }) =>
  database.query('SELECT outcome, error_code FROM decision_outcomes WHERE request_id = $1', [request.request_id]);

it('says of an approved tool call that it succeeded, before its agent hears of the result', async () => {
  const { ref, id, dispatch, end, request } = await heldCallOf(a);
  await approvals.resolve(ref, 'approved');
  expect(await outcomes(request)).toEqual([]);
  await pays(b, a, id);
  expect(await outcomes(request)).toEqual([{ outcome: 'succeeded', error_code: null }]);
  dispatch.error('HANDLER_ERROR', 'the rest went wrong'); // which changes nothing of the call
  await end;
  const effect = { message_id: ref.message_id, request_id: request.request_id, outcome: 'succeeded' };
  expect(await fixture.events('message.decision_effect')).toEqual([effect]);
});

it('says that it failed, with the code of the tool, and keeps no text of an agent', async () => {
  for (const [code, kept] of [
    ['NO_MONEY', 'NO_MONEY'],
    ['Ada has no money', 'HANDLER_ERROR'],
  ] as const) {
    const { ref, id, request } = await heldCallOf(a, node, { amount: kept.length });
    await approvals.resolve(ref, 'approved');
    (await take(b, 'pay')).result(failing(code, 'the account is empty'));
    await resultOf(a, id);
    expect(await outcomes(request)).toEqual([{ outcome: 'failed', error_code: kept }]);
  }
});
