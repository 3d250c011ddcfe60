import { beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../../embedded/free-port.js';
import { until } from '../../setup/until.js';
import type { FixtureAgent } from '../fixture-agent.js';
import { artifact, type HostedAgentServer, hostedAgent, message, type Script, task } from '../hosted/hosted-agent.js';
import { database, fixture, useMesh } from '../use-mesh.js';
import { ask, callTool, ok, refusedWith, resultOf } from './tool-fixture.js';

useMesh('a');

let a: FixtureAgent;

beforeEach(async () => {
  a = (await (await fixture.node()).join('a')).agent;
});

const data = (value: object) => ({ ...message(''), parts: [{ kind: 'data', data: value }] });

/** A hosted agent that lists the tool `t`. */
async function hosted(script: Script, card: object = {}): Promise<HostedAgentServer> {
  const server = await hostedAgent(script);
  await fixture.register('h', { deployment_mode: 'hosted' });
  await database.query(
    `UPDATE agents SET public_url = $2, status = 'available', tools = '["t"]', agent_card = $3
      WHERE tenant_id = $1 AND instance_id = 'h'`,
    [fixture.tenantId, server.url, JSON.stringify(card)],
  );
  return server;
}

describe('a hosted agent', () => {
  it('gets a call as a message with a data part, and answers with one', async () => {
    const server = await hosted({ 'message/send': (reply) => reply.result(data({ sum: 3 })) });
    expect(await ask(a, { tool: 't', arguments: { x: 1 }, deadline_ms: 9_000 })).toEqual(ok({ sum: 3 }));
    const [request] = server.received;
    const tool_call = {
      tool: 't',
      dispatch_id: expect.stringMatching(/^call_/),
      caller: { agent_type: 'worker', instance_id: 'a' },
      deadline_ms: expect.any(Number),
      idempotency_key: expect.stringMatching(/^call_/),
    };
    expect(request?.headers.authorization).toMatch(/^Bearer ey/);
    expect(request?.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect(request?.body).toMatchObject({
      jsonrpc: '2.0',
      params: {
        message: { parts: [{ kind: 'data', data: { tool: 't', arguments: { x: 1 } } }], metadata: { tool_call } },
        metadata: { tool_call, 'urn:agent-fleet:dispatch:1': { dispatch_id: tool_call.dispatch_id } },
      },
    });
  });

  it('of A2A 1.0 gets it in its own words', async () => {
    const answer = { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ data: { sum: 3 } }] } };
    const server = await hosted({ SendMessage: (reply) => reply.result(answer) }, { protocolVersion: '1.0' });
    expect(await ask(a, { tool: 't', arguments: { x: 1 } })).toEqual(ok({ sum: 3 }));
    expect(server.received[0]?.body.params.message).toMatchObject({ parts: [{ data: { tool: 't' } }] });
  });

  it.each<[string, Script, object]>([
    ['text', { 'message/send': (reply) => reply.result(message('three')) }, ok('three')],
    ['a task', { 'message/send': (reply) => reply.result(task('completed', { artifacts: [artifact('3')] })) }, ok('3')],
    ['a whole result', { 'message/send': (reply) => reply.result(data({ ok: true, result: [1] })) }, ok([1])],
    [
      'a task that is not done yet',
      {
        'message/send': (reply) => reply.result(task('working')),
        'tasks/get': (reply) => reply.result(task('completed', { artifacts: [artifact('3')] })),
      },
      ok('3'),
    ],
    [
      'a refusal of its own',
      { 'message/send': (reply) => reply.result(data({ ok: false, error: { code: 'NO', message: 'no' } })) },
      refusedWith('NO'),
    ],
    ['an error', { 'message/send': (reply) => reply.error(-32602, 'bad arguments') }, refusedWith('HANDLER_ERROR')],
    ['a question', { 'message/send': (reply) => reply.result(task('input-required')) }, refusedWith('HANDLER_ERROR')],
    ['HTTP 500', { 'message/send': (reply) => reply.raw(500, 'text/plain', 'oops') }, refusedWith('HANDLER_ERROR')],
    ['a broken connection', { 'message/send': (reply) => reply.break() }, refusedWith('AGENT_DISCONNECTED')],
  ])('answers with %s', async (_, script, result) => {
    await hosted(script);
    expect(await ask(a, { tool: 't' })).toEqual(result);
  });

  it('that cannot be reached is unavailable', async () => {
    await hosted({});
    await database.query(`UPDATE agents SET public_url = $2 WHERE tenant_id = $1 AND instance_id = 'h'`, [
      fixture.tenantId,
      `http://127.0.0.1:${await freePort()}`,
    ]);
    expect(await ask(a, { tool: 't' })).toEqual(refusedWith('TARGET_UNAVAILABLE'));
  });

  it('is told when the answer is not wanted any more', async () => {
    const server = await hosted({
      'message/send': (reply) => reply.result(task('working')),
      'tasks/get': (reply) => reply.result(task('working')),
      'tasks/cancel': (reply) => reply.result(task('canceled')),
    });
    const id = callTool(a, { tool: 't' });
    await until(() => server.methods().includes('tasks/get'));
    a.send('error', { code: 'CANCELED' }, id);
    expect(await resultOf(a, id)).toEqual(refusedWith('CANCELED'));
    await until(() => server.methods().includes('tasks/cancel'));
  });
});
