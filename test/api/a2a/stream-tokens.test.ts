import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import type { StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import { FleetClient } from '../../../sdk/index.js';
import { StreamReader } from '../../setup/stream-reader.js';
import { until, within } from '../../setup/until.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi({ clocks: { credentialCheckMs: 200 } });
await joinOnRecord(api, 'worker-1');

const METADATA = { agent_type: 'worker' };

async function credential() {
  const { client_id } = await api.credentialOf(api.tenantId, ['read']);
  const claims = { tenant_id: api.tenantId, agent_type: 'credential', scopes: ['read' as const], sub: client_id };
  return {
    id: client_id,
    token: (seconds: number) => api.tokens.issueAccessToken({ ...claims, credential_id: client_id }, seconds),
  };
}

/** An open stream. */
async function opened(token: string, method: string, params: object, version = '0.3'): Promise<Response> {
  const response = await fetch(new URL('/send', api.baseUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, 'a2a-version': version },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  return response;
}

const lastOf = (text: string): unknown => JSON.parse(text.trim().split('data: ').at(-1) ?? '');
const send = () => api.client.send('hi', { metadata: METADATA, blocking: false });

test.each([
  ['0.3', 'tasks/resubscribe', { code: 'unauthorized' }],
  ['1.0', 'SubscribeToTask', [expect.objectContaining({ metadata: { code: 'unauthorized' } })]],
])("a stream of %s ends with its token, says so, and nobody else's does", async (version, method, data) => {
  const { id } = await send();
  const other = new StreamReader(api.client, 'tasks/resubscribe', { id });
  await other.has(1);
  const { token } = await credential();
  const stream = await opened(await token(2), method, { id }, version);
  const text = await within(stream.text(), 8_000, 'the end of the stream');
  expect(lastOf(text)).toMatchObject({ jsonrpc: '2.0', id: 1, error: { code: -32603, data } });
  await answerMessage(api, id, COMPLETED);
  await other.done;
  expect(other.events.at(-1)).toMatchObject({ kind: 'status-update', final: true });
});

test('streams end within 5 s of the revocation of their credential', async () => {
  const { id } = await send();
  const { id: credential_id, token } = await credential();
  const streams = await Promise.all(
    [600, 601].map(async (seconds) => opened(await token(seconds), 'tasks/resubscribe', { id })),
  );
  expect((await api.client.post('/credentials/revoke', { credential_id })).status).toBe(200);
  for (const text of await within(Promise.all(streams.map((each) => each.text())), 5_000, 'the end of the streams')) {
    expect(lastOf(text)).toMatchObject({ error: { data: { code: 'unauthorized' } } });
  }
});

test('the client goes on with a new token, without a gap or a repeat', async () => {
  const { token } = await credential();
  const given: string[] = [];
  const give = async () => {
    given.push(await token(4));
    return given.at(-1) as string;
  };
  const client = new FleetClient({ url: api.baseUrl, token: give });
  const events: StreamEvent[] = [];
  const done = (async () => {
    for await (const event of client.stream('hi', { agentType: METADATA.agent_type })) events.push(event);
  })();
  await until(() => events.length > 0, { what: 'the task' });
  await until(() => given.length > 1, { timeoutMs: 15_000, what: 'a second token' });
  const { id } = events[0] as Task;
  await answerMessage(api, id, COMPLETED);
  await done;
  client.close();
  expect(new Set(given.map((each) => decodeJwt(each).jti)).size).toBe(given.length);
  expect(events.filter(({ kind }) => kind === 'task')).toHaveLength(1);
  expect(events.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
});

test('a client whose credential was revoked is told so', async () => {
  const { id } = await send();
  const own = await api.credentialOf(api.tenantId, ['read']);
  const client = new FleetClient({ url: api.baseUrl, clientId: own.client_id, clientSecret: own.client_secret });
  const events = client.tasks.resubscribe(id);
  await events.next();
  expect((await api.client.post('/credentials/revoke', { credential_id: own.client_id })).status).toBe(200);
  const rest = (async () => {
    for await (const _event of events);
  })();
  await expect(within(rest, 15_000, 'the end of the stream')).rejects.toMatchObject({
    status: 401,
    code: 'unauthorized',
  });
  client.close();
});
