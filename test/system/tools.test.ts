import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { AgentRegisterResponse } from '../../contracts/api/agents.js';
import { CredentialSecretResponse, GetTokenResponse } from '../../contracts/api/auth.js';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { ToolResult } from '../../contracts/api/tools.js';
import { GetUsageResponse } from '../../contracts/api/usage.js';
import { dispatchIn, type HostedAgentServer, hostedAgent, message } from '../mesh/hosted/hosted-agent.js';
import { ask, refusedWith, take } from '../mesh/tools/tool-fixture.js';
import type { RawAgent } from '../setup/agent.js';
import type { Answer } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { gate, until } from '../setup/until.js';
import { joinType, to } from './fixture.js';

const shared = await sharedPlatform();
const { client } = shared.platform;
let helper: RawAgent;
let helperId: string;

/** A token that may read, of a new credential. */
async function tokenFor(access: object = {}, asked: object = {}): Promise<string> {
  const body = { name: 'test', scopes: ['read'], ...access };
  const { credential, client_secret } = await client.ok('/credentials/create', body, CredentialSecretResponse);
  const login = { client_id: credential.client_id, client_secret, ...asked };
  return (await client.ok('/auth/get_token', login, GetTokenResponse)).token;
}

/** It stands for agents of the type `travel`. */
const token = await tokenFor({ agent_types: ['travel'] }, { agent_type: 'travel' });

beforeEach(async () => {
  helperId = `helper-${randomUUID().slice(0, 8)}`;
  helper = await joinAgent(shared.platform, { instanceId: helperId, agentType: 'helper', tools: ['look_up'] });
});

const ok = (result: unknown) => ({ ok: true, result });

/** `POST /tools/call` as the hosted agent makes it. */
async function post(body: object, bearer = token, signal?: AbortSignal): Promise<Answer> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` };
  const url = new URL('/tools/call', client.baseUrl);
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal: signal ?? null });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

async function call(body: object): Promise<ToolResult> {
  const answer = await post({ target: { instance_id: helperId }, ...body });
  expect(answer.status).toBe(200);
  return ToolResult.parse(answer.body);
}

/** A hosted agent of the type `travel` that holds its answers back. */
async function hosted(instanceId: string): Promise<{ server: HostedAgentServer; answer: () => void }> {
  const held = gate();
  const server = await hostedAgent({
    'message/send': async (reply) => {
      await held.promise;
      reply.result(message('done'));
    },
  });
  const body = {
    instance_id: instanceId,
    agent_type: 'travel',
    public_url: server.url,
    agent_card: {},
    tools: ['book'],
  };
  await client.ok('/agents/register', body, AgentRegisterResponse);
  return { server, answer: () => held.open() };
}

describe('a hosted agent', () => {
  test('calls a tool, as one of its type or by its name', async () => {
    const { answer } = await hosted('t-0');
    const unnamed = call({ tool: 'look_up', arguments: { city: 'Bern' } });
    const first = await take(helper, 'look_up');
    expect(first.payload).toMatchObject({ arguments: { city: 'Bern' }, caller: { agent_type: 'travel' } });
    first.result(ok({ found: true }));
    expect(await unnamed).toEqual(ok({ found: true }));
    const named = call({ tool: 'look_up', instance_id: 't-0' });
    const second = await take(helper, 'look_up');
    expect(second.payload.caller).toEqual({ agent_type: 'travel', instance_id: 't-0' });
    second.result(ok(null));
    expect(await named).toEqual(ok(null));
    answer();
  });

  test('is told by status what is wrong with the request', async () => {
    const full = await client.token();
    const codeOf = async (body: object, bearer?: string) => {
      const answer = await post(body, bearer);
      return `${answer.status} ${(answer.body as { code?: string }).code}`;
    };
    expect(await codeOf({ arguments: {} })).toBe('400 BAD_REQUEST');
    expect(await codeOf({ tool: 't', extra: 1 })).toBe('400 BAD_REQUEST');
    expect(await codeOf({ tool: 't', target: { name: 'x' } })).toBe('400 BAD_REQUEST');
    expect(await codeOf({ tool: 't' }, 'nonsense')).toBe('401 unauthorized');
    expect(await codeOf({ tool: 't', instance_id: helperId })).toBe('404 NOT_FOUND');
    expect(await codeOf({ tool: 't', instance_id: 'nobody' })).toBe('404 NOT_FOUND');
    expect((await post({ tool: 't', instance_id: helperId }, full)).status).toBe(200);
    expect(await codeOf({ tool: 't' }, await tokenFor())).toBe('403 forbidden');
  });

  test('calls on behalf of its dispatch, until that is canceled', async () => {
    const { server, answer } = await hosted('t-1');
    const task = await client.send('work', { metadata: { instance_id: 't-1', deadline_ms: 30_000 }, blocking: false });
    const request = await until(() => server.received[0]);
    const { dispatch_id } = dispatchIn(request);
    const result = call({ tool: 'look_up', dispatch_id });
    const taken = await take(helper, 'look_up');
    expect(taken.payload).toMatchObject({
      session_id: task.contextId,
      caller: { agent_type: 'travel', instance_id: 't-1' },
    });
    expect(taken.payload.deadline_ms).toBeLessThanOrEqual(30_000);
    await client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
    await taken.canceled();
    expect(await result).toEqual(refusedWith('CANCELED'));
    expect(await call({ tool: 'look_up', dispatch_id })).toEqual(refusedWith('UNKNOWN_DISPATCH'));
    answer();
  });

  test('that hangs up has its call canceled', async () => {
    const hangUp = new AbortController();
    const pending = post({ tool: 'look_up', target: { instance_id: helperId } }, token, hangUp.signal);
    const taken = await take(helper, 'look_up');
    hangUp.abort();
    await expect(pending).rejects.toThrow();
    await taken.canceled();
  });

  test('is called by a connected agent, and calls on behalf of that', async () => {
    const { server, answer } = await hosted('t-2');
    const booked = ask(helper, { tool: 'book', target: { instance_id: 't-2' }, arguments: { seat: 1 } });
    const request = await until(() => server.received[0]);
    const { dispatch_id } = dispatchIn(request);
    expect(await call({ tool: 'book', target: { instance_id: 't-2' }, dispatch_id })).toEqual(
      refusedWith('POLICY_DENIED'),
    );
    const inner = call({ tool: 'look_up', dispatch_id });
    (await take(helper, 'look_up')).result(ok('Bern'));
    expect(await inner).toEqual(ok('Bern'));
    answer();
    expect(await booked).toEqual(ok('done'));
  });
});

test('an agent calls another while it answers a message', async () => {
  const asker = await joinType(shared.platform, 'asker', async (dispatch) => {
    const { dispatch_id } = dispatch.payload;
    const target = { instance_id: helperId };
    dispatch.result(JSON.stringify(await ask(asker, { tool: 'look_up', target, dispatch_id })));
  });
  const sent = client.send('where?', to('asker'));
  (await take(helper, 'look_up')).result(ok('here'));
  const task = await sent;
  expect((await client.message(task.id)).assistant_output).toBe(JSON.stringify(ok('here')));
  const usageOf = async (group_by: string) =>
    (await client.ok('/telemetry/get_usage', { group_by, page_size: 100 }, GetUsageResponse)).rows;
  const counted = async () =>
    (await usageOf('session')).find(({ session, tool_calls }) => session === task.contextId && tool_calls > 0);
  expect(await until(counted)).toMatchObject({ messages: 1, dispatches: 1, tool_calls: 1 });
  const row = (await usageOf('instance_id')).find(({ instance_id }) => instance_id === 'asker-1');
  expect(row).toMatchObject({ messages: 1, dispatches: 1, tool_calls: 1 });
});
