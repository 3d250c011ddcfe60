import { describe, expect, it } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { hostedAgent, message, type Script, task } from './hosted-agent.js';
import { CLOSED, hostedSetup } from './hosted-fixture.js';
import { granted, tokenServer } from './token-server.js';

const { fixtureAt } = hostedSetup(freshDatabase);

const KEY = 'sk-very-secret';
const API_KEY = { type: 'api_key' as const, name: 'X-API-Key', value: KEY };
const withTokensOf = (token_url: string) => ({
  type: 'oauth2_client_credentials' as const,
  token_url,
  client_id: 'fleet',
  client_secret: KEY,
});

/** An agent that wants a credential, and a message to it that is ready to be sent. */
async function wanting(script: Script, auth: typeof API_KEY | ReturnType<typeof withTokensOf>) {
  const agent = await hostedAgent(script);
  const fixture = await fixtureAt(agent.url, {}, auth);
  const ref = await fixture.open();
  const run = async () => {
    const end = await fixture.runner().run(ref);
    return { end, record: await fixture.message(ref) };
  };
  return { agent, fixture, ref, run };
}

describe('an agent that wants an API key', () => {
  it('gets it with every request, and no token of the platform', async () => {
    const { agent, run } = await wanting(
      {
        'message/send': (reply) => reply.result(task('working')),
        'tasks/get': (reply) => reply.result(task('completed')),
      },
      API_KEY,
    );
    expect((await run()).end).toMatchObject(CLOSED);
    const keys = agent.received.map(({ method, headers }) => [method, headers['x-api-key'], headers.authorization]);
    expect(keys).toEqual([
      ['message/send', KEY, undefined],
      ['tasks/get', KEY, undefined],
    ]);
  });

  it('gets it with the cancel too', async () => {
    const { agent, fixture, ref } = await wanting(
      {
        'message/send': (reply) => reply.result(task('working')),
        'tasks/get': (reply) => reply.result(task('working')),
        'tasks/cancel': (reply) => reply.result(task('canceled')),
      },
      API_KEY,
    );
    const runner = fixture.runner();
    const running = runner.run(ref);
    await until(() => agent.methods().includes('tasks/get'));
    await fixture.gateway.cancel(fixture.caller, ref.message_id, 'enough');
    await runner.cancel(ref, 'enough');
    await running;
    const cancel = agent.received.find(({ method }) => method === 'tasks/cancel');
    expect(cancel?.headers).toMatchObject({ 'x-api-key': KEY });
  });

  it.each<[string, Script]>([
    ['HTTP', { 'message/send': (reply) => reply.raw(401, 'text/plain', `wrong key ${KEY}`) }],
    ['JSON-RPC', { 'message/send': (reply) => reply.error(-32000, `wrong key ${KEY}`, { key: KEY }) }],
  ])('does not give it away when it refuses it by %s', async (_, script) => {
    const { run } = await wanting(script, API_KEY);
    const { error } = (await run()).record;
    expect(error).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('wrong key …') });
    expect(JSON.stringify(error)).not.toContain(KEY);
  });

  it('says so when the key can no longer be read', async () => {
    const { agent, fixture, run } = await wanting({}, API_KEY);
    await fixture.database.query("UPDATE agents SET dispatch_auth = '\\x01' WHERE tenant_id = $1", [fixture.tenantId]);
    const error = { code: 'HANDLER_ERROR', message: expect.stringContaining('register the agent again') };
    expect((await run()).record).toMatchObject({ state: 'failed', error });
    expect(agent.received).toEqual([]);
  });
});

describe('an agent that wants a token of its own server', () => {
  it('gets one, the same for several messages', async () => {
    const server = await tokenServer((n) => granted(`t${n}`));
    const { agent, fixture, run } = await wanting(
      { 'message/send': (reply) => reply.result(message('hi')) },
      withTokensOf(server.url),
    );
    expect((await run()).record).toMatchObject({ state: 'completed' });
    const runner = fixture.runner();
    await runner.run(await fixture.open());
    await runner.run(await fixture.open());
    expect(agent.received.map(({ headers }) => headers.authorization)).toEqual(['Bearer t0', 'Bearer t1', 'Bearer t1']);
  });

  it('gets another one when it refuses the first, and the message goes on', async () => {
    const server = await tokenServer((n) => granted(`t${n}`));
    const { agent, run } = await wanting(
      {
        'message/send': (reply) => {
          if (reply.request.headers.authorization === 'Bearer t0') reply.raw(401, 'text/plain', 'revoked');
          else reply.result(message('hi'));
        },
      },
      withTokensOf(server.url),
    );
    expect((await run()).record).toMatchObject({ state: 'completed', assistant_output: 'hi' });
    expect(agent.received).toHaveLength(2);
  });

  it('is asked only twice when it refuses every token', async () => {
    const server = await tokenServer((n) => granted(`t${n}`));
    const { agent, run } = await wanting(
      { 'message/send': (reply) => reply.raw(401, 'text/plain', 'who are you?') },
      withTokensOf(server.url),
    );
    const error = { code: 'HANDLER_ERROR', message: expect.stringMatching(/HTTP 401\): who are you\?$/) };
    expect((await run()).record).toMatchObject({ state: 'failed', error });
    expect(agent.received).toHaveLength(2);
    expect(server.received).toHaveLength(2);
  });

  it.each([
    ['refuses the client', { status: 400, body: { error: 'invalid_scope' } }, 'HANDLER_ERROR', /invalid_scope$/],
    ['fails', { status: 502, body: '' }, 'TARGET_UNAVAILABLE', /token server answered HTTP 502/],
  ])('gets nothing when the server %s', async (_, reply, code, text) => {
    const server = await tokenServer(() => reply);
    const { agent, fixture, run } = await wanting({}, withTokensOf(server.url));
    const error = { code, message: expect.stringMatching(text) };
    expect((await run()).record).toMatchObject({ state: 'failed', error });
    expect(agent.received).toEqual([]);
    expect(await fixture.hosted()).toMatchObject({ consecutive_failures: 0 });
  });
});
