import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { ToolResult } from '../../contracts/api/tools.js';
import { freePort } from '../../embedded/free-port.js';
import { Agent, type AgentTask, SILENT_LOG, z } from '../../sdk/index.js';
import { hostedAgent, message } from '../mesh/hosted/hosted-agent.js';
import { refusedWith } from '../mesh/tools/tool-fixture.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { FAST_PATH, PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { gate, until } from '../setup/until.js';

let shared: SharedPlatform;
let client: ApiClient;

/** A policy that wants approval for the tool `pay`. */
async function wantApproval(approval: object = {}): Promise<void> {
  const policy = { scope: 'tool', name: 'payments', decision: 'require_approval', match: { tools: ['pay'] } };
  await client.ok('/policies/create_policy', { ...policy, evaluator: { approval } }, PolicyResponse);
}

/** An agent of the SDK; it is closed with the test. */
function agentOf(type: string): Agent {
  const {
    base_url: url,
    agent_client_id: clientId,
    agent_client_secret: clientSecret,
    ca_file,
  } = shared.platform.devJson();
  const access = { url, clientId, clientSecret, ca: readFileSync(ca_file, 'utf8') };
  const agent = new Agent({ ...access, type, instanceId: `${type}-1`, drainOnSignals: false, log: SILENT_LOG });
  onTestFinished(() => agent.close(0).catch(() => undefined));
  return agent;
}

/** The agent that pays, with what it has paid and how often it has connected. */
async function teller(): Promise<{ paid: number[]; connections: () => number }> {
  const paid: number[] = [];
  let connections = 0;
  const agent = agentOf('teller').tool('pay', z.object({ amount: z.number() }), ({ amount }) => {
    paid.push(amount);
    return `${amount} paid`;
  });
  agent.on('connected', () => {
    connections += 1;
  });
  await agent.connect();
  return { paid, connections: () => connections };
}

/** An agent that pays 5 for each message, with the tasks that it was given. */
function buyer(type = 'buyer'): { agent: Agent; tasks: AgentTask[]; join(): Promise<unknown> } {
  const tasks: AgentTask[] = [];
  const agent = agentOf(type).onMessage(async (task) => {
    tasks.push(task);
    return String(await task.callTool('pay', { amount: 5 }));
  });
  return { agent, tasks, join: () => (type === 'hosted' ? agent.serve() : agent.connect()) };
}

const buy = (metadata: object = {}) => client.send('buy', { metadata: { agent_type: 'buyer', ...metadata } });
const resolve = (messageId: string, body: object) => client.ok(`/messages/${messageId}/resolve`, body, ResolveResponse);
/** Of the dispatches of which something went out. */
const dispatchStates = async (messageId: string) => {
  const rows = await shared.database.query<{ state: string }>(
    `SELECT state FROM dispatches WHERE message_id = $1 AND state <> 'released' ORDER BY dispatch_id`,
    [messageId],
  );
  return rows.map(({ state }) => state).join();
};

describe.each(PATHS)('a tool call that needs approval, on the $way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform(env);
    client = shared.platform.client;
    await wantApproval();
    return shared.dispose;
  });

  test.each(['connected', 'hosted'])('of a %s agent waits for the human, and the agent goes on', async (mode) => {
    const { paid } = await teller();
    const { tasks, join } = buyer(mode);
    await join();
    const task = await buy({ agent_type: mode, deadline_ms: 4_000 });
    expect(task.status.state).toBe('input-required');
    const { input_request } = await client.message(task.id);
    expect(input_request).toMatchObject({ source: 'policy', tool: 'pay', arguments: { amount: 5 } });
    await delay(5_000); // longer than the agent had
    expect(paid).toEqual([]);
    await resolve(task.id, { resolution: 'approved', request_id: input_request?.request_id });
    const ended = await client.untilState(task.id, 'completed');
    expect(ended.assistant_output).toBe('5 paid');
    expect(paid).toEqual([5]);
    expect(tasks).toHaveLength(1);
    expect(await dispatchStates(task.id)).toBe('completed');
  });

  test('that is rejected fails the message, and its agent hears of it', async () => {
    await teller();
    const errors: unknown[] = [];
    const agent = agentOf('buyer').onMessage((task) =>
      task.callTool('pay', { amount: 5 }).then(String, (error) => {
        errors.push(error.code);
        throw error;
      }),
    );
    await agent.connect();
    const task = await buy();
    expect(await resolve(task.id, { resolution: 'rejected' })).toMatchObject({ new_state: 'failed' });
    expect((await client.message(task.id)).error).toMatchObject({ code: 'APPROVAL_REJECTED' });
    expect(await until(() => errors[0])).toBe('APPROVAL_REJECTED');
  });
});

describe('a tool call that needs approval', () => {
  beforeAll(async () => {
    const env = { FLEET_API_PORT: String(await freePort()), FLEET_MESH_PORT: String(await freePort()) };
    shared = await startPlatform({ ...FAST_PATH.env, ...env });
    client = shared.platform.client;
    await wantApproval();
    return shared.dispose;
  });
  const restart = async () => {
    await shared.platform.kill9();
    await shared.platform.start();
  };

  test('survives that everything is killed at each step', async () => {
    const { paid, connections } = await teller();
    const first = buyer();
    await first.join();
    const task = await buy();
    expect(task.status.state).toBe('input-required');
    await restart(); // while the agent waits
    await until(async () => (await dispatchStates(task.id)) === 'lost', { what: 'the lost dispatch' });
    expect((await client.message(task.id)).state).toBe('input-required');
    await restart(); // while nobody but the record waits
    await first.agent.close(0);
    expect(await resolve(task.id, { resolution: 'approved' })).toMatchObject({ new_state: 'working' });
    const before = connections();
    await restart(); // before anybody has heard of the decision
    await until(() => connections() > before, { what: 'the agent with the tool' });
    const second = buyer();
    await second.join();
    const ended = await client.untilState(task.id, 'completed');
    expect(ended.assistant_output).toBe('5 paid');
    expect(paid).toEqual([5]);
    expect(second.tasks.map(({ resolutions }) => resolutions.map(({ accepted }) => accepted))).toEqual([[true]]);
    const { approvals } = await client.ok('/messages/get_approvals', { message_id: task.id }, GetApprovalsResponse);
    expect(approvals).toHaveLength(1);
    expect(await dispatchStates(task.id)).toBe('lost,completed');
  }, 120_000);

  test('over HTTP is told to ask again, and passes when a human has approved', async () => {
    const { paid } = await teller();
    const working = gate();
    const server = await hostedAgent({
      'message/send': async (reply) => {
        await working.promise;
        reply.result(message('done'));
      },
    });
    const about = { instance_id: 'courier-1', agent_type: 'courier', public_url: server.url, agent_card: {} };
    await client.post('/agents/register', about);
    const sent = await client.send('go', { metadata: { agent_type: 'courier' }, blocking: false });
    const { dispatch_id } = (await until(() => server.received[0])).body;
    const payload = { tool: 'pay', arguments: { amount: 7 }, dispatch_id, idempotency_key: randomUUID() };
    const call = async (deadline_ms: number) =>
      ToolResult.parse((await client.post('/tools/call', { ...payload, deadline_ms })).body);
    expect(await call(500)).toEqual(refusedWith('APPROVAL_PENDING'));
    expect(await call(500)).toEqual(refusedWith('APPROVAL_PENDING'));
    const waiting = call(30_000);
    await resolve(sent.id, { resolution: 'approved' });
    expect(await waiting).toEqual({ ok: true, result: '7 paid' });
    expect(paid).toEqual([7]);
    working.open();
    await client.untilState(sent.id, 'completed');
    const { approvals } = await client.ok('/messages/get_approvals', { message_id: sent.id }, GetApprovalsResponse);
    expect(approvals).toHaveLength(1);
  });
});
