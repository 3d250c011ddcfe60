// @module-tag once
import { expect, test } from 'vitest';
import { Task } from '../../../contracts/a2a/a2a.js';
import { GetDeliveriesResponse } from '../../../contracts/api/deliveries.js';
import { MessagesPendingResponse, ResolveResponse } from '../../../contracts/api/messages.js';
import { GetApprovalsResponse } from '../../../contracts/api/policies/approvals.js';
import { GUARD_OPERATIONS } from '../../../contracts/api/policies/guards.js';
import { freePort } from '../../../embedded/free-port.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { receiver } from '../../setup/receiver.js';
import { until } from '../../setup/until.js';
import { dispatchesTo, hold, joinType, looksOf, to } from '../../system/fixture.js';
import { ANSWER, SECRET } from '../../system/guard-fixture.js';
import { buyer, teller, wantApproval } from '../../system/sdk-agents.js';

/** Keeps the relay from the changes of one of the configs: as if the process died between the end of the task and the relay's next look. */
const HOLD_BACK = `
  CREATE TABLE public.held_changes AS SELECT * FROM push_changes WHERE false;
  GRANT INSERT ON public.held_changes TO fleet_app, fleet_system;
  CREATE FUNCTION hold_back() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.held_changes SELECT NEW.*; RETURN NULL; END $$;
  CREATE TRIGGER hold_back BEFORE INSERT ON push_changes FOR EACH ROW WHEN (NEW.config_id = 'before') EXECUTE FUNCTION hold_back()`;
const LET_GO = `
  DROP TRIGGER hold_back ON push_changes; DROP FUNCTION hold_back;
  INSERT INTO push_changes OVERRIDING SYSTEM VALUE SELECT * FROM public.held_changes; DROP TABLE public.held_changes`;

const ports = { FLEET_API_PORT: String(await freePort()), FLEET_MESH_PORT: String(await freePort()) };
const shared = await startPlatform(ports);
const { platform, database } = shared;
const { client } = platform;
await wantApproval(platform);
const restart = async () => {
  await platform.kill9();
  await platform.start();
};
const resolve = (id: string, resolution: string) =>
  client.ok(`/messages/${id}/resolve`, { resolution }, ResolveResponse);

test('everything is killed: a question is asked on, and its answer lets the agent go on', async () => {
  await joinType(platform, 'patient', (dispatch) => dispatch.ask({ kind: 'approval', title: 'Launch?' }));
  const task = await client.send('launch', to('patient'));
  expect(task.status.state).toBe('input-required');
  await restart();
  const { messages } = await client.ok('/messages/pending', {}, MessagesPendingResponse);
  expect(messages.map(({ message_id }) => message_id)).toContain(task.id);
  await joinType(platform, 'patient', ({ payload, result }) =>
    result(`launched ${payload.params.metadata?.resolution !== undefined}`),
  );
  await resolve(task.id, 'approved');
  expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('launched true');
}, 120_000);

test('everything is killed: output that is held is delivered once it is approved', async () => {
  const guard = { guard: 'secrets', enabled: true, decision: 'require_approval', config: { stages: ['output'] } };
  await client.ok('/policies/update_guard', guard, GUARD_OPERATIONS.updateGuard.response);
  const agent = await joinType(platform, 'teller-of-secrets', (dispatch) => dispatch.result(ANSWER));
  const task = await client.send('Tell me', to('teller-of-secrets'));
  expect(task.status.state).toBe('input-required');
  await restart();
  expect(JSON.stringify(await client.message(task.id))).not.toContain(SECRET);
  expect(await resolve(task.id, 'approved')).toMatchObject({ new_state: 'working' });
  await restart(); // perhaps before its workflow has heard of it
  expect((await client.untilState(task.id, 'completed')).assistant_output).toBe(ANSWER);
  expect(dispatchesTo(agent)).toHaveLength(1);
}, 120_000);

test('what a crash came before, or cut off, is told after the next start', async () => {
  const before = await receiver();
  const cutOff = await receiver((response, attempt) => {
    if (attempt > 1) response.end();
  });
  const agent = await joinType(platform, 'crash');
  const { task, dispatch } = await hold(client, agent, to('crash'));
  const set = (id: string, url: string) =>
    client.call('tasks/pushNotificationConfig/set', { taskId: task.id, pushNotificationConfig: { id, url } });
  await set('before', before.url);
  await set('cut off', cutOff.url);
  await database.query(HOLD_BACK);
  dispatch.result('done');
  await cutOff.untilArrived(1);
  await platform.kill9();
  await database.query(LET_GO);
  expect(before.arrived).toEqual([]);
  await platform.start();
  const states = async () => {
    const answer = await client.ok('/webhooks/get_deliveries', { task_id: task.id }, GetDeliveriesResponse);
    return answer.deliveries.map(({ status }) => status).join();
  };
  await until(async () => (await states()) === 'delivered,delivered', { timeoutMs: 90_000, what: 'both ends' });
  for (const { arrived } of [before, cutOff]) expect(Task.parse(arrived.at(-1)?.body).status.state).toBe('completed');
  const [first] = cutOff.arrived;
  expect(cutOff.arrived.length).toBeGreaterThan(1);
  for (const { headers, raw } of cutOff.arrived) {
    expect(headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(raw.equals(first?.raw as Buffer)).toBe(true);
  }
}, 120_000);

test('everything is killed: a tool call that waits for approval survives it at each step', async () => {
  const { dispatchStates } = looksOf(shared);
  /** Of the dispatches of which something went out. */
  const states = async (id: string) => (await dispatchStates(id)).filter((state) => state !== 'released').join();
  const { paid, connections } = await teller(platform);
  const first = buyer(platform);
  await first.agent.connect();
  const task = await client.send('buy', to('buyer'));
  expect(task.status.state).toBe('input-required');
  await restart(); // while the agent waits
  await until(async () => (await states(task.id)) === 'lost', { what: 'the lost dispatch' });
  expect((await client.message(task.id)).state).toBe('input-required');
  await restart(); // while nobody but the record waits
  await first.agent.close(0);
  expect(await resolve(task.id, 'approved')).toMatchObject({ new_state: 'working' });
  const connected = connections();
  await restart(); // before anybody has heard of the decision
  await until(() => connections() > connected, { what: 'the agent with the tool' });
  const second = buyer(platform);
  await second.agent.connect();
  expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('5 paid');
  expect(paid).toEqual([5]);
  expect(second.tasks.map(({ resolutions }) => resolutions.map(({ accepted }) => accepted))).toEqual([[true]]);
  const { approvals } = await client.ok('/messages/get_approvals', { message_id: task.id }, GetApprovalsResponse);
  expect(approvals).toHaveLength(1);
  expect(await states(task.id)).toBe('lost,completed');
}, 120_000);
