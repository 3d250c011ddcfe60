import { beforeAll, describe, expect, test } from 'vitest';
import { AgentGetByIdResponse } from '../../contracts/api/agents.js';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { SessionGetByIdResponse, SessionInitResponse } from '../../contracts/api/sessions.js';
import { dispatched, echo, type RawAgent } from '../setup/agent.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent, openSocket, registerAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

let shared: SharedPlatform;
let client: ApiClient;
/** An agent of its own type that has said hello, with its resume token. */
async function connect(agentType: string): Promise<{ agent: RawAgent; instanceId: string; resumeToken: string }> {
  const instanceId = `${agentType}-1`;
  await registerAgent(client, { instanceId, agentType });
  const agent = await openSocket(shared.platform, instanceId);
  const { resume_token } = await agent.hello();
  return { agent, instanceId, resumeToken: resume_token };
}

/** Sends a message and waits until the agent has its dispatch. */
async function inFlight(agent: RawAgent, agentType: string) {
  const task = await client.send('work', { metadata: { agent_type: agentType }, blocking: false });
  return { task, dispatch: dispatched(agent, await agent.nextOfType('dispatch')) };
}

async function session(sessionId: string) {
  return (await client.ok('/sessions/get_by_id', { session_id: sessionId }, SessionGetByIdResponse)).session;
}

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform({ ...env, RESUME_WINDOW_MS: '4000', INPUT_EXPIRY_MS: '1500' });
    client = shared.platform.client;
    return shared.dispose;
  });

  describe('an agent that is lost while it works', () => {
    test('fails its message with AGENT_DISCONNECTED when it stays away, and nobody else gets it', async () => {
      const { agent } = await connect('gone');
      const { task } = await inFlight(agent, 'gone');
      await joinAgent(shared.platform, { instanceId: 'gone-2', agentType: 'gone' }, echo);
      agent.kill();
      const message = await client.untilState(task.id, 'failed');
      expect(message.error?.code).toBe('AGENT_DISCONNECTED');
      const dispatches = await shared.database.query('SELECT 1 FROM dispatches WHERE message_id = $1', [task.id]);
      expect(dispatches).toHaveLength(1);
    });

    test('has its message failed by the time it is welcomed back without its token', async () => {
      const { agent, instanceId } = await connect('amnesiac');
      const { task, dispatch } = await inFlight(agent, 'amnesiac');
      agent.kill();
      await agent.closed;
      const back = await openSocket(shared.platform, instanceId);
      expect((await back.hello()).resumed).toBe(false);
      const message = await client.message(task.id);
      expect([message.state, message.error?.code]).toEqual(['failed', 'AGENT_DISCONNECTED']);

      dispatched(back, dispatch.frame).result('too late');
      expect((await back.nextOfType('error')).payload.code).toMatch(/^(DISPATCH_ALREADY_TERMINAL|UNKNOWN_DISPATCH)$/);
      expect((await client.message(task.id)).state).toBe('failed');
    });

    test('gets the dispatch again under the same id when it returns with its token, and completes it', async () => {
      const { agent, instanceId, resumeToken } = await connect('steady');
      const { task, dispatch } = await inFlight(agent, 'steady');
      agent.kill();
      await agent.closed;
      const back = await openSocket(shared.platform, instanceId);
      const welcome = await back.hello({ resume_token: resumeToken });
      expect(welcome).toMatchObject({ resumed: true, replayed_dispatches: [dispatch.payload.dispatch_id] });
      const replay = dispatched(back, await back.nextOfType('dispatch'));
      expect(replay.frame.id).toBe(dispatch.frame.id);
      replay.result('after all');
      expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('after all');
    });

    test('keeps a dispatch that it says it still works on, and is not sent it twice', async () => {
      const { agent, instanceId, resumeToken } = await connect('keeper');
      const { task, dispatch } = await inFlight(agent, 'keeper');
      agent.kill();
      await agent.closed;
      const back = await openSocket(shared.platform, instanceId);
      const inflight = [{ dispatch_id: dispatch.payload.dispatch_id, last_seq: -1 }];
      const welcome = await back.hello({ resume_token: resumeToken, inflight });
      expect(welcome).toMatchObject({ resumed: true, replayed_dispatches: [] });
      dispatched(back, dispatch.frame).result('kept');
      expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('kept');
    });

    test('has one result accepted, however often it sends it', async () => {
      const { agent } = await connect('eager');
      const { task, dispatch } = await inFlight(agent, 'eager');
      for (const answer of ['first', 'second', 'third']) dispatch.result(answer);
      expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('first');
      for (let refused = 0; refused < 2; refused += 1) {
        expect((await agent.nextOfType('error')).payload.code).toBe('DISPATCH_ALREADY_TERMINAL');
      }
      expect((await client.message(task.id)).assistant_output).toBe('first');
    });

    test('cannot answer for another instance', async () => {
      const { agent } = await connect('owner');
      const { agent: thief } = await connect('thief');
      const { task, dispatch } = await inFlight(agent, 'owner');
      dispatched(thief, dispatch.frame).result('mine');
      expect((await thief.nextOfType('error')).payload.code).toBe('UNKNOWN_DISPATCH');
      expect((await client.message(task.id)).state).toBe('working');
      dispatch.result('really mine');
      await client.untilState(task.id, 'completed');
    });
  });

  describe('an agent that answers with garbage', () => {
    const task = { kind: 'task', id: 'x', contextId: 'y', status: { state: 'completed', timestamp: '\u0000' } };
    const asks = (input_request: object) => ({ result: '', status: { state: 'input-required', input_request } });
    const answers: [string, string, object][] = [
      ['a NUL in its text', 'dispatch_result', { result: 'a\u0000b' }],
      ['half a surrogate pair', 'dispatch_result', { result: 'a\ud800b' }],
      ['a NUL in a member’s name', 'dispatch_result', { result: { 'a\u0000b': 1 } }],
      ['a NUL in a task', 'dispatch_result', { result: task }],
      [
        'a NUL in the model’s name',
        'dispatch_result',
        { result: '', usage: { input_tokens: 1, output_tokens: 1, model: '\u0000' } },
      ],
      [
        'more tokens than there are',
        'dispatch_result',
        { result: '', usage: { input_tokens: 2 ** 53, output_tokens: 1 } },
      ],
      ['a prototype', 'dispatch_result', JSON.parse('{"result":{"__proto__":{"a":1},"constructor":{"prototype":1}}}')],
      ['nothing at all', 'dispatch_result', {}],
      ['a question with a NUL', 'dispatch_result', asks({ title: '\u0000', prompt: '\u0000' })],
      [
        'a question whose schema is none',
        'dispatch_result',
        asks({ kind: 'form', schema: { type: 'nonsense', pattern: '(' } }),
      ],
      ['a chunk with a NUL', 'dispatch_chunk', { seq: 0, parts: [{ kind: 'text', text: '\u0000' }], last_chunk: true }],
      ['a chunk that skips some', 'dispatch_chunk', { seq: 7, parts: [] }],
      ['an error with a NUL', 'error', { code: 'A\u0000B', message: '\u0000' }],
      ['an error of a made-up code', 'error', { code: '../../x', message: '' }],
    ];

    test.each(answers)('%s: its message ends or waits, and it can go on', async (_what, type, payload) => {
      const { agent, instanceId } = await connect('garbled');
      const { task: sent, dispatch } = await inFlight(agent, 'garbled');
      agent.send(type, payload, dispatch.frame.id);
      dispatch.result('and then this');
      const pong = agent.nextOfType('pong').catch(() => undefined);
      agent.send('ping', {});
      if (await pong) agent.kill();
      else expect((await agent.closed).code).toBe(1002);
      await agent.closed;

      const back = await openSocket(shared.platform, instanceId);
      await back.hello();
      await until(async () =>
        ['completed', 'failed', 'input-required'].includes((await client.message(sent.id)).state),
      );
      const again = await inFlight(back, 'garbled');
      again.dispatch.result('fine');
      expect((await client.untilState(again.task.id, 'completed')).assistant_output).toBe('fine');
      back.close();
    });
  });

  describe('what runs out of time', () => {
    test('a question that nobody answers fails its message with APPROVAL_EXPIRED', async () => {
      await joinAgent(shared.platform, { instanceId: 'asker-1', agentType: 'asker' }, (dispatch) =>
        dispatch.ask({ kind: 'confirmation', title: 'Anybody?' }),
      );
      const task = await client.send('ask', { metadata: { agent_type: 'asker' } });
      expect(task.status.state).toBe('input-required');
      expect((await client.untilState(task.id, 'failed')).error?.code).toBe('APPROVAL_EXPIRED');
      expect(await client.failure(`/messages/${task.id}/resolve`, { resolution: 'confirmed' })).toMatch(/^4(09|10) /);
    });

    test('an idle session expires and gives its slot back; one with a message in flight does not', async () => {
      const { agent, instanceId } = await connect('idle');
      const init = async () => {
        const body = { instance_id: instanceId, idle_timeout_seconds: 1 };
        return (await client.ok('/sessions/init', body, SessionInitResponse)).session_id;
      };
      const working = await init();
      const task = await client.send('long', { contextId: working, blocking: false });
      await agent.nextOfType('dispatch');
      const idle = await init();

      await until(async () => (await session(idle)).status === 'expired', { what: 'the idle session to expire' });
      expect((await session(idle)).ended_at).not.toBeNull();
      expect((await client.rpc('hello?', { contextId: idle })).error?.code).toBe(-32004);
      expect((await session(working)).status).toBe('active');

      await client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
      await until(async () => (await session(working)).status === 'expired', { what: 'the other session to expire' });
      const { agent: row } = await client.ok('/agents/get_by_id', { instance_id: instanceId }, AgentGetByIdResponse);
      expect(row.current_sessions).toBe(0);
    });
  });
});
