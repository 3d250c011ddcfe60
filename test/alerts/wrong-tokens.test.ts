import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { ErrorBody } from '../../contracts/primitives.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import type { Answer } from '../setup/platform/api-client.js';

const api = await serveApi({ trustProxyCidrs: ['127.0.0.0/8'] });
const { held, tokenFor } = await approvalsFixture(api);
const failureOf = ({ status, body }: Answer) => `${status} ${ErrorBody.parse(body).code}`;

/** Answers a message from an address. */
const answer = (from: string, id: string, callback_token: string) =>
  api.client.raw(`/messages/${id}/resolve`, JSON.stringify({ callback_token, resolution: 'approved' }), {
    'content-type': 'application/json',
    'x-forwarded-for': from,
  });

/** Presses a button of a delivery that there is not, at a time. */
function press(from: string, tenant_id: string, ageSeconds = 0): Promise<Answer> {
  const value = JSON.stringify({ tenant_id, delivery_id: 'dlv_none', request_id: 'req_none' });
  const payload = { type: 'block_actions', user: { id: 'U1' }, actions: [{ action_id: 'resolve:approved', value }] };
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const timestamp = String(Math.floor(Date.now() / 1_000) - ageSeconds);
  const signature = `v0=${createHmac('sha256', 'guess').update(`v0:${timestamp}:${body}`).digest('hex')}`;
  return api.client.raw('/slack/interactions', body, {
    'content-type': 'application/x-www-form-urlencoded',
    'x-slack-signature': signature,
    'x-slack-request-timestamp': timestamp,
    'x-forwarded-for': from,
  });
}

test('ten wrong tokens of an address, over the API and by links, and the next is 429 for a minute', async () => {
  const id = await held();
  const token = await tokenFor(id);
  for (let guess = 0; guess < 9; guess += 1)
    expect(failureOf(await answer('198.51.100.1', id, `${guess}`.repeat(43)))).toBe('401 unauthorized');
  const page = await fetch(`${api.baseUrl}/approve/${'x'.repeat(43)}`, {
    headers: { 'x-forwarded-for': '198.51.100.1' },
  });
  expect(page.status).toBe(401);
  const refused = await answer('198.51.100.1', id, token);
  expect(failureOf(refused)).toBe('429 RATE_LIMITED');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await answer('198.51.100.2', id, token)).status).toBe(200);
});

test('an access token is not limited by them', async () => {
  const id = await held();
  for (let guess = 0; guess < 10; guess += 1) await answer('127.0.0.1', id, 'y'.repeat(43));
  expect((await api.client.post(`/messages/${id}/resolve`, { resolution: 'approved' })).status).toBe(200);
});

test('ten wrong signatures of an address about a tenant, and the next is 429; another tenant is not shut out', async () => {
  for (let guess = 0; guess < 10; guess += 1)
    expect(failureOf(await press('198.51.100.9', api.tenantId))).toBe('401 unauthorized');
  expect(failureOf(await press('198.51.100.9', api.tenantId))).toBe('429 RATE_LIMITED');
  expect(failureOf(await press('198.51.100.9', 'ten_other'))).toBe('401 unauthorized');
});

test('what cannot be signed, or is too old, is refused without a look at the database', async () => {
  const read: string[] = [];
  const { tenant } = api.db;
  api.core.db.tenant = (tenantId, work) => {
    read.push(tenantId);
    return tenant(tenantId, work);
  };
  expect(failureOf(await press('198.51.100.20', api.tenantId, 301))).toBe('401 unauthorized');
  expect(read).toEqual([]);
  await press('198.51.100.20', api.tenantId);
  expect(read).toEqual([api.tenantId]);
  api.core.db.tenant = tenant;
});
