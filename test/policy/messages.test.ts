import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PlanResponse } from '../../contracts/api/plans.js';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { step, untilPlan } from '../plans/plan-fixture.js';
import { type Behaviour, echo } from '../setup/agent.js';
import { unfitEvents } from '../setup/events.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform, type TenantPlatform } from '../setup/platform/shared-platform.js';
import { receiver } from '../setup/receiver.js';
import { gate, until } from '../setup/until.js';
import { deletePolicies, type NewPolicy, policyFor } from './policy-fixture.js';

let shared: TenantPlatform;
let client: ApiClient;
/** What reached the agents, in order. */
let reached: string[] = [];

const noting: Behaviour = (dispatch) => {
  reached.push(dispatch.text);
  return echo(dispatch);
};
const to = (agent_type: string) => ({ agent_type });
const approve = (id: string) => client.post(`/messages/${id}/resolve`, { resolution: 'approved' });
const denying = (match: NewPolicy['match'], more: Partial<NewPolicy> = {}) =>
  policyFor(client, { scope: 'admission', decision: 'deny', reason: 'Not today.', match, ...more });

/** The events of policies that the tests before this one have left. */
let seen = 0;
const policyEvents = () =>
  shared.database.query<{ event_type: string; payload: Record<string, unknown> }>(
    `SELECT event_type, payload FROM events WHERE category = 'policy' ORDER BY event_id OFFSET ${seen}`,
  );

describe('policies about messages', () => {
  beforeAll(async () => {
    shared = await sharedPlatform();
    seen = 0;
    client = shared.platform.client;
    await joinAgent(shared.platform, { instanceId: 'writer-1', agentType: 'writer' }, noting);
    await joinAgent(shared.platform, { instanceId: 'coder-1', agentType: 'coder', skills: [{ id: 'code' }] }, noting);
    return shared.dispose;
  });

  afterEach(async () => {
    await deletePolicies(client);
    expect(await unfitEvents(shared.database)).toEqual([]);
    seen += (await policyEvents()).length;
    reached = [];
  });

  test('an instance that must get nothing is known only when it is chosen: the message then reaches nobody', async () => {
    await denying({ instance_ids: ['coder-1'] }, { scope: 'dispatch' });
    const task = await client.send('hello', { metadata: to('coder') });
    await client.untilState(task.id, 'failed');
    expect((await client.message(task.id)).error?.code).toBe('POLICY_DENIED');
    expect(reached).toEqual([]);
    expect((await client.send('hi', { metadata: to('writer') })).status.state).toBe('completed');
    expect((await policyEvents()).map(({ payload }) => payload.action)).toEqual(['dispatch']);
  });

  test('a message waits for the approval that its dispatch wants, then goes on', async () => {
    await policyFor(client, { scope: 'dispatch', decision: 'require_approval', match: { agent_types: ['writer'] } });
    const task = await client.send('please', { metadata: to('writer') });
    expect(task.status.state).toBe('input-required');
    const { input_request } = await client.message(task.id);
    expect(input_request).toMatchObject({ kind: 'approval', source: 'policy' });
    expect(reached).toEqual([]);
    expect((await approve(task.id)).status).toBe(200);
    await client.untilState(task.id, 'completed');
    expect(reached).toEqual(['please']);
    expect((await policyEvents()).map(({ event_type }) => event_type)).toEqual(['policy.approval_required']);
  });

  test('an approval of the dispatch does not hold for a policy that was changed since: it asks again', async () => {
    const match = { agent_types: ['writer'] };
    const { policy_id } = await policyFor(client, { scope: 'dispatch', decision: 'require_approval', match });
    const { id } = await client.send('please', { metadata: to('writer'), blocking: false });
    const asked = await client.untilState(id, 'input-required');
    await client.post('/policies/update_policy', { policy_id, reason: 'Only on Mondays.' });
    await approve(id);
    const again = await until(async () => {
      const { input_request } = await client.message(id);
      return input_request && input_request.request_id !== asked.input_request?.request_id ? input_request : undefined;
    });
    expect(again.prompt).toBe('Only on Mondays.');
    expect(reached).toEqual([]);
    await approve(id);
    await client.untilState(id, 'completed');
  });

  test('an audit is recorded once, and the message goes on', async () => {
    await policyFor(client, { scope: 'admission', decision: 'audit', name: 'entered' });
    await policyFor(client, { scope: 'dispatch', decision: 'audit', name: 'sent' });
    expect((await client.send('hi', { metadata: to('writer') })).status.state).toBe('completed');
    const audits = await policyEvents();
    expect(audits.map(({ event_type, payload }) => [event_type, payload.policy_name])).toEqual([
      ['policy.audited', 'entered'],
      ['policy.audited', 'sent'],
    ]);
  });

  test.each([
    [true, 'failed'],
    [false, 'completed'],
  ])(
    'a message is accepted as submitted, the evaluator is asked once, and what that says holds: %s',
    async (applies, state) => {
      const answered = gate();
      const { url, arrived, untilArrived } = await receiver(
        (response) => void answered.promise.then(() => response.end(JSON.stringify({ applies }))),
      );
      await denying({}, { evaluator: { type: 'webhook', url, timeout_ms: 5_000 } });
      const accepted = await client.send('hi', { metadata: to('writer'), blocking: false });
      expect(accepted.status.state).toBe('submitted');
      await untilArrived(1);
      expect((await client.message(accepted.id)).state).toBe('submitted');
      expect(reached).toEqual([]);
      answered.open();
      await client.untilState(accepted.id, state);
      expect(arrived.map(({ body }) => body.dry_run)).toEqual([false]);
      expect(reached).toHaveLength(applies ? 0 : 1);
    },
  );

  test.each<[NewPolicy['scope'], string, Record<string, string>, object]>([
    ['dispatch', 'the chosen instance', to('writer'), { agent_type: 'writer', instance_id: 'writer-1', skill_id: '' }],
    [
      'admission',
      'what the message names, not the instance that gets it',
      { skill_id: 'code' },
      { agent_type: 'coder', instance_id: '', skill_id: 'code' },
    ],
  ])('at %s an evaluator sees %s', async (scope, _what, metadata, agent) => {
    const { url, arrived } = await receiver((response) => response.end('{"applies":false}'));
    await denying({}, { scope, evaluator: { type: 'webhook', url } });
    expect((await client.send('hi', { metadata })).status.state).toBe('completed');
    expect(arrived.map(({ body }) => (body.request as { agent: object }).agent)).toEqual([agent]);
  });

  test('an approval that an evaluator wanted holds for the instance that it was told of', async () => {
    const { url, arrived } = await receiver((response) => response.end('{"applies":true}'));
    const evaluator = { type: 'webhook' as const, url };
    await policyFor(client, { scope: 'dispatch', decision: 'require_approval', evaluator });
    await joinAgent(shared.platform, { instanceId: 'editor-1', agentType: 'editor' }, noting);
    const { id } = await client.send('please', { metadata: to('editor'), blocking: false });
    const asked = await client.untilState(id, 'input-required');
    await joinAgent(shared.platform, { instanceId: 'editor-2', agentType: 'editor' }, noting);
    await client.post('/agents/deregister', { instance_id: 'editor-1' });
    await approve(id);
    await until(async () => {
      const { state, input_request } = await client.message(id);
      expect(state).not.toBe('completed');
      return input_request && input_request.request_id !== asked.input_request?.request_id;
    });
    await approve(id);
    await client.untilState(id, 'completed');
    expect(reached).toEqual(['please']);
    const instances = arrived.map(({ body }) => (body.request as { agent: { instance_id: string } }).agent.instance_id);
    expect([...new Set(instances)]).toEqual(['editor-1', 'editor-2']);
  });

  test('an evaluator sees the token that sent the message, also where its credential may do more', async () => {
    const { url, arrived } = await receiver((response) => response.end('{"applies":false}'));
    await denying({}, { evaluator: { type: 'webhook', url } });
    const planner = await joinAgent(shared.platform, { instanceId: 'planner-1', agentType: 'planner' });
    const { session_id } = await client.ok('/sessions/init', { instance_id: 'planner-1' }, SessionInitResponse);
    const proposal = { description: 'a plan', steps: [step('a', 'writer', 'hi')] };
    planner.send('tool_call', { tool: 'plan.create', arguments: proposal, session_id });
    const { result } = (await planner.nextOfType('tool_result')).payload as { result: { plan_id: string } };
    await client.ok('/plans/approve', { plan_id: result.plan_id }, PlanResponse);
    await untilPlan(client, result.plan_id, 'completed');
    expect(arrived.map(({ body }) => (body.request as { token: object }).token)).toContainEqual({
      ...{ sub: 'planner-1', scopes: ['read'], agent_type: 'planner' },
      ...{ user_id: '', session_id: '', agent_types: [] },
      credential_id: expect.any(String),
    });
  });
});
