import { expect, test } from 'vitest';
import { createOutbound } from '../../../http/outbound.js';
import { HttpEmbedder } from '../../../knowledge/embedding/http-embedder.js';
import type { Lane } from '../../../knowledge/embedding/lanes.js';
import { httpServer } from '../../runtime/loopback-server.js';
import { cleanUp } from '../../setup/clean-up.js';
import { gate, until } from '../../setup/until.js';

interface Received {
  url: string | undefined;
  authorization: string | undefined;
  body: { model: string; input: string[] };
}
type Answer = { status?: number; headers?: Record<string, string>; body: unknown };

/** A provider that answers by the number of the request, from 0. */
async function provider(answer: (request: Received, index: number) => Answer | Promise<Answer>) {
  const received: Received[] = [];
  const { url } = await httpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = JSON.parse(Buffer.concat(chunks).toString());
      const entry = { url: request.url, authorization: request.headers.authorization, body };
      const { status = 200, headers = {}, body: sent } = await answer(entry, received.push(entry) - 1);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof sent === 'string' ? sent : JSON.stringify(sent));
    });
  });
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  const embedder = new HttpEmbedder({ url: `${url}/v1/`, apiKey: 'key-1', model: 'tiny' }, outbound, 1);
  return { embedder, received, embed: (texts: string[]) => embedder.embed(texts, AbortSignal.timeout(30_000)) };
}

const vectors = (input: string[]) => ({
  data: input.map((text, index) => ({ index, embedding: [text.length, 1, 0] })),
});

test('texts go to the endpoint in batches with model and key, and come back in their order with length 1', async () => {
  const { embedder, embed, received } = await provider(({ body }) => {
    const { data } = vectors(body.input);
    return { body: { data: data.reverse() } }; // the index counts, not the place
  });
  expect(embedder.dimensions).toBe(0);
  const texts = Array.from({ length: 150 }, (_, n) => 'x'.repeat(n));
  const found = await embed(texts);
  expect(received.map(({ body }) => body.input.length).sort((one, other) => other - one)).toEqual([64, 64, 22]);
  expect(received[0]).toMatchObject({ url: '/v1/embeddings', authorization: 'Bearer key-1', body: { model: 'tiny' } });
  expect(embedder.dimensions).toBe(3);
  for (const [index, vector] of found.entries()) {
    expect((vector[0] as number) / (vector[1] as number)).toBeCloseTo(index, 3);
    expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
  }
});

test.each([429, 500, 503])('a request that gets %i is made again', async (status) => {
  const { embed, received } = await provider(({ body }, index) =>
    index < 2 ? { status, headers: { 'retry-after': '0' }, body: {} } : { body: vectors(body.input) },
  );
  expect(await embed(['text'])).toHaveLength(1);
  expect(received).toHaveLength(3);
});

test('a provider that keeps failing is given up after four requests', async () => {
  const { embed, received } = await provider(() => ({ status: 500, body: {} }));
  await expect(embed(['text'])).rejects.toMatchObject({ code: 'BAD_GATEWAY' });
  expect(received).toHaveLength(4);
});

test.each([
  ['a status that no repeat helps', { status: 401, body: {} }],
  ['a pause that is too long', { status: 429, headers: { 'retry-after': '3600' }, body: {} }],
  ['no JSON', { body: 'not json' }],
  ['no embeddings', { body: { error: 'none' } }],
  ['one embedding too many', { body: vectors(['a', 'b']) }],
  ['a vector without direction', { body: { data: [{ index: 0, embedding: [0, 0, 0] }] } }],
])('%s fails at once', async (_name, answer) => {
  const { embed, received } = await provider(() => answer);
  await expect(embed(['text'])).rejects.toMatchObject({ code: 'BAD_GATEWAY', statusCode: 502 });
  expect(received).toHaveLength(1);
});

test('a provider that changes its dimensions is refused', async () => {
  const { embed } = await provider(({ body }, index) =>
    index === 0 ? { body: vectors(body.input) } : { body: { data: [{ index: 0, embedding: [1, 2] }] } },
  );
  await embed(['text']);
  await expect(embed(['text'])).rejects.toMatchObject({ code: 'BAD_GATEWAY' });
});

test('at most four requests are under way at once', async () => {
  let underWay = 0;
  let most = 0;
  const { embed, received } = await provider(async ({ body }) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await new Promise(setImmediate);
    underWay -= 1;
    return { body: vectors(body.input) };
  });
  await embed(Array(64 * 12).fill('text'));
  expect(received).toHaveLength(12);
  expect(most).toBeLessThanOrEqual(4);
});

test('an address where nothing listens is 502', async () => {
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  const embedder = new HttpEmbedder({ url: 'http://127.0.0.1:1/v1', model: 'tiny' }, outbound, 1);
  await expect(embedder.embed(['text'], AbortSignal.timeout(30_000))).rejects.toMatchObject({ code: 'BAD_GATEWAY' });
});

test('requests that wait are made by their urgency', async () => {
  const opened = gate();
  const { embedder, received } = await provider(async ({ body }, index) => {
    if (index < 4) await opened.promise; // as many as run at once
    return { body: vectors(body.input) };
  });
  const ask = (text: string, lane?: Lane) => embedder.embed([text], AbortSignal.timeout(30_000), lane);
  const bulk = Array.from({ length: 8 }, (_, n) => ask(`bulk ${n}`));
  const urgent = [ask('inline', 'inline'), ask('query', 'query')];
  await until(() => received.length === 4, { what: 'the first requests' });
  opened.open();
  await Promise.all([...bulk, ...urgent]);
  const order = received.map(({ body }) => body.input[0]);
  expect(order.slice(4, 6).sort()).toEqual(['inline', 'query']);
  expect(order).toHaveLength(10);
});
