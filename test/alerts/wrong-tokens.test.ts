import { expect, test } from 'vitest';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import type { Answer } from '../setup/platform/api-client.js';
import { failureOf } from './alert-fixture.js';
import { press as pressButton } from './slack-button.js';

const api = await serveApi({ trustProxyCidrs: ['127.0.0.0/8'] });
const { held, tokenFor } = await approvalsFixture(api);

/** Answers a message from an address. */
const answer = (from: string, id: string, callback_token: string) =>
  api.client.raw(`/messages/${id}/resolve`, JSON.stringify({ callback_token, resolution: 'approved' }), {
    'content-type': 'application/json',
    'x-forwarded-for': from,
  });

/** Presses a button of a delivery that there is not, at a time. */
function press(from: string, tenant_id: string, ageSeconds = 0): Promise<Answer> {
  const value = JSON.stringify({ tenant_id, delivery_id: 'dlv_none', request_id: 'req_none' });
  const button = { action_id: 'resolve:approved', value };
  const headers = { 'x-forwarded-for': from };
  return pressButton(api.client, button, { url: 'http://127.0.0.1:9/', secret: 'guess', ageSeconds, headers })();
}

test('a token answers its own message alone, while its tenant is there, and of 50 uses at once one succeeds', async () => {
  const from = '198.51.100.30';
  const [id, other] = [await held(), await held()];
  const token = await tokenFor(id);
  expect(failureOf(await answer(from, id, await tokenFor(other)))).toBe('401 unauthorized');
  const mark = (at: string) =>
    api.database.query(`UPDATE tenants SET deleted_at = ${at} WHERE tenant_id = $1`, [api.tenantId]);
  await mark('now()');
  expect(failureOf(await answer(from, id, token))).toBe('401 unauthorized');
  await mark('NULL');
  const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await answer(from, id, token)).status));
  expect(statuses.sort()).toEqual([200, ...Array(49).fill(409)]);
});

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
