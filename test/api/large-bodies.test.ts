import { request as httpRequest } from 'node:http';
import { expect, test } from 'vitest';
import { createTenant } from '../../auth/tenants.js';
import { IngestResponse } from '../../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../../contracts/limits.js';
import { cleanUp } from '../setup/clean-up.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { until } from '../setup/until.js';
import { serveApi } from './served-api.js';

const api = await serveApi();
const PATH = '/knowledge_base/ingest';
const padding = 'x'.repeat(LIMITS.bodyBytes);
const namespace = 'large-bodies';
await api.client.post('/knowledge_base/new', { namespace });

async function refusal(body: string | Buffer) {
  const headers = { ...(await api.client.headers()), 'content-type': 'application/json' };
  const response = await fetch(new URL(PATH, api.baseUrl), {
    method: 'POST',
    headers,
    body: new Uint8Array(Buffer.from(body)),
  });
  const { code, error } = (await response.json()) as { code: string; error: string };
  return { status: response.status, code, error };
}

const brokenUtf8 = (pad: string) =>
  Buffer.concat([Buffer.from(`{"content":"${pad}`), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);

test.each<[string, (pad: string) => string | Buffer, number]>([
  ['is cut off', (pad) => `{"content":"${pad}"`, 400],
  ['has a comma too many', (pad) => `{"content":"${pad}",}`, 400],
  ['is not UTF-8', brokenUtf8, 400],
  ['has a NUL', (pad) => `{"content":"${pad}\\u0000"}`, 400],
  ['has the key of a prototype', (pad) => `{"content":"${pad}","__proto__":{}}`, 400],
  ['is too deep', (pad) => `{"content":"${pad}","tags":${'['.repeat(64)}${']'.repeat(64)}}`, 400],
  ['lacks a field', (pad) => `{"content":"${pad}"}`, 400],
  ['has a field of another type', (pad) => `{"namespace":7,"content":"${pad}"}`, 400],
  ['is no object', (pad) => `["${pad}"]`, 400],
])('a large body that %s is refused as a small one is', async (_, body, status) => {
  const [small, large] = [await refusal(body('')), await refusal(body(padding))];
  expect(small).toMatchObject({ status, code: 'BAD_REQUEST' });
  expect(large).toEqual(small);
});

test('a large body is taken in whole', async () => {
  const content = `Wallflowers — 😀 — grow.\n${padding}`;
  const answer = await api.client.ok(PATH, { namespace, source_id: 'large', content, wait: false }, IngestResponse);
  expect(answer).toMatchObject({ status: 'processing', source_id: 'large' });
  const [row] = await api.database.query<{ content: Buffer }>(
    'SELECT content FROM knowledge_documents WHERE job_id = $1',
    [answer.job_id],
  );
  expect(row?.content.toString() === content).toBe(true);
});

/** Begins a large request, and leaves it in the middle. @returns how to end it, once it is being read */
async function beginLarge(client: ApiClient): Promise<() => void> {
  const headers = { ...(await client.headers()), 'content-length': 2 * LIMITS.bodyBytes, expect: '100-continue' };
  const request = httpRequest(new URL(PATH, api.baseUrl), { method: 'POST', headers });
  request.on('error', () => undefined); // it is hung up
  cleanUp(() => void request.destroy());
  await new Promise<void>((resolve) => {
    request.once('continue', resolve);
    request.flushHeaders();
  });
  request.write('{');
  return () => request.destroy();
}

test('a process reads two large bodies of a tenant at once, and refuses more until one of them has ended', async () => {
  const [end] = [await beginLarge(api.client), await beginLarge(api.client)];
  const large = { namespace, content: padding, wait: false };
  const small = { namespace, content: 'Small.', wait: false };
  await until(async () => (await api.client.failure(PATH, large)) === '429 RATE_LIMITED', { what: 'a refusal' });
  expect((await api.client.post(PATH, small)).status).toBe(200);
  const other = await createTenant(api.db, 'two');
  const client = await api.clientOf(other.tenant_id, ['full']);
  await client.post('/knowledge_base/new', { namespace });
  expect((await client.post(PATH, large)).status).toBe(200);
  end?.();
  await until(async () => (await api.client.post(PATH, large)).status === 200, { what: 'a large body that is taken' });
});
