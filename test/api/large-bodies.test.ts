import { request as httpRequest } from 'node:http';
import { expect, test } from 'vitest';
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

async function refusal(text: string) {
  const { status, body } = await api.client.raw(PATH, text, await api.client.headers());
  const { code, error } = body as { code: string; error: string };
  return { status, code, error };
}

// That the thread which parses large bodies refuses all that the event loop refuses is a table of large-json.test.ts.
test.each<[string, (pad: string) => string, number]>([
  ['is cut off', (pad) => `{"content":"${pad}"`, 400],
  ['has the key of a prototype', (pad) => `{"content":"${pad}","__proto__":{}}`, 400],
  ['lacks a field', (pad) => `{"content":"${pad}"}`, 400],
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
  const stored = 'SELECT content FROM knowledge_documents WHERE job_id = $1';
  const [row] = await api.database.query<{ content: Buffer }>(stored, [answer.job_id]);
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
  const client = await api.clientOf(await api.otherTenant(), ['full']);
  await client.post('/knowledge_base/new', { namespace });
  expect((await client.post(PATH, large)).status).toBe(200);
  end?.();
  await until(async () => (await api.client.post(PATH, large)).status === 200, { what: 'a large body that is taken' });
});
