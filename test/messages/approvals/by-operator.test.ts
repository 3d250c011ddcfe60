import { expect, test } from 'vitest';
import { createDecisions } from '../../../api/decisions.js';
import { resolveByOperator } from '../../../messages/supervise/by-operator.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { held, approvalsOf, tokenFor } = await approvalsFixture(api);
const allowing = { ...api.core, limits: { ...api.core.limits, decidesBySignal: true } };

/** Sends a signal about the open request of a message. @returns the state of the message afterwards */
async function signaled(message_id: string, decision: object, core = allowing): Promise<string> {
  const { input_request } = await api.client.message(message_id);
  const sent = { request_id: input_request?.request_id, ...decision };
  await resolveByOperator(core, { tenant_id: api.tenantId, message_id }, sent);
  return (await api.client.message(message_id)).state;
}

test('an operator decides by a signal where that is allowed, and the audit says so', async () => {
  const id = await held();
  expect(await signaled(id, { resolution: 'approved' }, api.core)).toBe('input-required');
  expect(await signaled(id, { resolution: 'approved', comment: 'by phone' })).toBe('working');
  expect(await approvalsOf({ message_id: id })).toMatchObject([
    { principal: { type: 'temporal' }, comment: 'by phone' },
  ]);
});

test('the page behind a link says that an operator has decided', async () => {
  const id = await held();
  const { describe: show } = createDecisions({ messages: { core: api.core }, plans: api.plans });
  const token = await tokenFor(id);
  await signaled(id, { resolution: 'approved' });
  expect(await show(token)).toMatchObject({
    standing: { decisions: [{ by: 'an operator of the platform', resolution: 'approved' }] },
  });
});

test('a signal that does not fit changes nothing', async () => {
  const id = await held();
  expect(await signaled(id, { resolution: 'perhaps' })).toBe('input-required');
  expect(await signaled(id, { resolution: 'approved', request_id: 'req_other' })).toBe('input-required');
  expect(await signaled(id, { resolution: 'approved', data: {} })).toBe('input-required');
  expect(await signaled(id, { resolution: 'rejected' })).toBe('failed');
});
