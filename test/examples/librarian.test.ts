import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { createA2aServer } from '../../examples/librarian/a2a-server.js';
import { answer } from '../../examples/librarian/answer.js';
import { platformTokenCheck } from '../../examples/librarian/platform-token.js';

/** The librarian's server, and a platform's key with which the test signs. */
async function librarian() {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'EdDSA', use: 'sig' };
  const jwks = createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })));
  await once(jwks.listen(0, '127.0.0.1'), 'listening');
  const verify = platformTokenCheck({
    jwks_url: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/jwks`,
    instance_id: 'librarian-1',
    tenant_id: 'ten_1',
  });
  const server = createA2aServer({ card: (url) => ({ name: 'Librarian', url }), verify, answer });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const each of [jwks, server]) {
      each.close();
      each.closeAllConnections();
    }
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const token = (
    audience = 'librarian-1',
    expires = '60s',
    key = privateKey,
    claims: JWTPayload = { tenant_id: 'ten_1' },
  ) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k1' })
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(key);
  const post = async (body: unknown, bearer?: string) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return { url, token, post, privateKey };
}

const request = (method: string, text: string) => ({
  jsonrpc: '2.0',
  id: 7,
  method,
  params: {
    message: { kind: 'message', messageId: 'm1', role: 'user', contextId: 'ctx', parts: [{ kind: 'text', text }] },
  },
});

test('serves its card without a token', async () => {
  const { url } = await librarian();
  const response = await fetch(`${url}.well-known/agent-card.json`);
  expect(await response.json()).toEqual({ name: 'Librarian', url });
});

test('refuses a token that is missing, expired, for another instance or tenant, or signed by somebody else', async () => {
  const { token, post, privateKey } = await librarian();
  const stranger = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const bad = [
    undefined,
    'x.y.z',
    await token('other-1'),
    await token('librarian-1', '-1 minute'),
    await token('librarian-1', '60s', stranger.privateKey),
    await token('librarian-1', '60s', privateKey, { tenant_id: 'ten_2' }),
    await token('librarian-1', '60s', privateKey, {}),
  ];
  for (const bearer of bad) {
    const response = await post(request('message/send', 'count: a b'), bearer);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
  }
  expect((await post(request('message/send', 'count: a b'), await token())).status).toBe(200);
});

test('answers message/send with a completed task', async () => {
  const { token, post } = await librarian();
  const response = await post(request('message/send', 'count: One two three. Four five.'), await token());
  expect(await response.json()).toMatchObject({
    jsonrpc: '2.0',
    id: 7,
    result: {
      kind: 'task',
      contextId: 'ctx',
      status: { state: 'completed' },
      artifacts: [{ parts: [{ kind: 'text', text: expect.stringContaining('5 words in 2 sentences') }] }],
    },
  });
});

test('answers message/stream with the task, a chunk for each section, and the end', async () => {
  const { token, post } = await librarian();
  const response = await post(request('message/stream', 'Cats purr. Dogs bark. Cats sleep a lot.'), await token());
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const events = (await response.text())
    .split('\n\n')
    .filter(Boolean)
    .map((event) => JSON.parse(event.slice('data: '.length)).result);
  expect(events.map((event) => event.kind)).toEqual(['task', ...Array(4).fill('artifact-update'), 'status-update']);
  expect(events.slice(1, 5).map((event) => event.append)).toEqual([false, true, true, true]);
  expect(events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
});

test.each([
  ['not json', -32700],
  ['{"jsonrpc":"1.0"}', -32600],
  [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'no/such' }), -32601],
  [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }), -32602],
  [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'x' } }), -32001],
])('%s is JSON-RPC error %d', async (body, code) => {
  const { token, post } = await librarian();
  expect(await (await post(body, await token())).json()).toMatchObject({ error: { code } });
});

test('refuses a body over 1 MiB', async () => {
  const { token, post } = await librarian();
  expect((await post('x'.repeat(1024 * 1024 + 1), await token())).status).toBe(413);
});

const text = (parts: ReturnType<typeof answer>) =>
  parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
const ask = (content: string) => text(answer([{ kind: 'text', text: content }]));

test('makes a table of JSON', () => {
  expect(ask('table: [{"name":"Ann","age":3},{"name":"B|b"}]')).toBe(
    '| name | age |\n| --- | --- |\n| Ann | 3 |\n| B\\|b |  |',
  );
  expect(text(answer([{ kind: 'data', data: { a: [1, 2] } }]))).toBe('| key | value |\n| --- | --- |\n| a | [1,2] |');
  expect(ask('table: hello')).toBe('That is not JSON that I can read.');
});

test('sums up by the sentences that hold the frequent words', () => {
  const story =
    'Whales are large animals. The weather was fine. Whales sing songs, and whales live in the sea. I had tea. Lunch came. It rained.';
  expect(ask(`summarize: ${story}`)).toContain('Whales sing songs, and whales live in the sea.');
  expect(ask(`keywords: ${story}`)).toMatch(/^Keywords: whales \(3\)/);
});

test('explains itself', () => {
  expect(ask('hello')).toContain("I am the fleet's librarian");
});
