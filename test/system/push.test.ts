import { expect, test } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { type Delivery, GetDeliveriesResponse, RedeliverResponse } from '../../contracts/api/deliveries.js';
import { MessageCancelResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { receiverOf } from '../../deliveries/attempts.js';
import { dispatched } from '../setup/agent.js';
import { type Receiver, receiver, status } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { fleetOn, hold, to } from './fixture.js';

const { client, platform, database, tenant_id, join } = await fleetOn();

/** A message that is with its agent and goes on when the test says so. */
async function underWay(agentType: string) {
  const agent = await join(agentType);
  const { task, dispatch } = await hold(client, agent, to(agentType));
  return { id: task.id, dispatch, agent };
}

const set = async (taskId: string, pushNotificationConfig: object) => {
  const answer = await client.call('tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig });
  expect(answer.error).toBeUndefined();
};
const resolve = (id: string) => client.ok(`/messages/${id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);

/** The notifications of a task, the oldest first. */
async function logOf(task_id: string): Promise<Delivery[]> {
  const { deliveries } = await client.ok(
    '/webhooks/get_deliveries',
    { task_id, page_size: 100 },
    GetDeliveriesResponse,
  );
  return deliveries.reverse();
}

const untilOver = (id: string, count = 1) =>
  until(
    async () => {
      const rows = await logOf(id);
      return rows.length >= count && rows.every((row) => row.status !== 'pending') ? rows : undefined;
    },
    { what: `the end of the deliveries of ${id}` },
  );
const tasksOf = ({ arrived }: Receiver) => arrived.map(({ body }) => Task.parse(body));
const statesOf = (at: Receiver) => tasksOf(at).map((task) => task.status.state);

test('the end of a task is told as the task, with token and credentials, of which nothing is in the log', async () => {
  const hook = await receiver();
  const { id, dispatch } = await underWay('plain');
  const authentication = { schemes: ['Bearer'], credentials: 'given-to-nobody' };
  await set(id, { url: hook.url, token: 'seen-by-nobody', authentication });
  dispatch.result('done');
  const [first] = await hook.untilArrived(1);
  expect(first?.headers).toMatchObject({
    'content-type': 'application/json',
    'x-a2a-notification-token': 'seen-by-nobody',
    authorization: 'Bearer given-to-nobody',
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
  });
  const task = Task.parse(first?.body);
  expect(first?.headers.traceparent).toContain(`-${task.metadata?.trace_id}-`);
  expect(task).toMatchObject({ id, status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'done' }] }] });
  const [log] = await untilOver(id);
  const about = { rule_id: null, task_id: id, event_type: 'task.completed', url: hook.url };
  expect(log).toMatchObject({ ...about, status: 'delivered', attempts: [{ status_code: 200, success: true }] });
  expect(first?.headers['webhook-id']).toBe(log?.delivery_id);
  for (const text of [JSON.stringify(log), platform.log()]) expect(text).not.toMatch(/(given-to|seen-by)-nobody/);
});

test('1.0 is told stream responses', async () => {
  const hook = await receiver();
  const { id, dispatch } = await underWay('one-oh');
  const { error } = await client.call('CreateTaskPushNotificationConfig', { taskId: id, url: hook.url }, '1.0');
  expect(error).toBeUndefined();
  dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
  await hook.untilArrived(1);
  await client.ok('/messages/cancel', { message_id: id }, MessageCancelResponse);
  const [asked, ended] = await hook.untilArrived(2);
  expect(asked?.body).toMatchObject({ statusUpdate: { taskId: id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } });
  expect(ended?.body).toMatchObject({ task: { id, status: { state: 'TASK_STATE_CANCELED' } } });
});

test('every change is told, to each config, in order, as it was, however slow another receiver is', async () => {
  const quick = await receiver();
  const slow = await receiver((response, attempt) => {
    if (attempt > 1) response.end();
    else void quick.untilArrived(3).finally(() => response.end());
  });
  const { id, dispatch, agent } = await underWay('asks');
  await set(id, { id: 'slow', url: slow.url });
  await set(id, { id: 'quick', url: quick.url });
  dispatch.ask({ kind: 'confirmation', title: 'Go on?', prompt: 'Shall I?' });
  await quick.untilArrived(1);
  await resolve(id);
  dispatched(agent, await agent.nextOfType('dispatch')).result('done');
  await slow.untilArrived(3);
  for (const hook of [slow, quick]) {
    expect(statesOf(hook)).toEqual(['input-required', 'working', 'completed']);
    const [asked, working] = tasksOf(hook);
    const question = [{ text: 'Shall I?' }, { data: { input_request: { title: 'Go on?' } } }];
    expect(asked?.status.message?.parts).toMatchObject(question);
    expect([working?.status.message, working?.artifacts ?? []]).toEqual([undefined, []]);
  }
});

test('nothing is told any more after the config was deleted, not even what was to be tried again', async () => {
  const hook = await receiver(status(500));
  const { id, dispatch } = await underWay('deleted');
  await set(id, { id: 'a', url: hook.url });
  dispatch.result('done');
  await hook.untilArrived(1);
  await client.call('tasks/pushNotificationConfig/delete', { id, pushNotificationConfigId: 'a' });
  const [dropped] = await untilOver(id);
  expect(dropped?.status).toBe('dropped');
  expect((await client.post('/webhooks/redeliver', { delivery_id: dropped?.delivery_id })).status).toBe(409);
});

test('what was given up is sent again by redeliver: the same bytes under the same id, also after the task has changed', async () => {
  let isUp = false;
  const hook = await receiver((response) => status(isUp ? 200 : 400)(response));
  const { id, dispatch, agent } = await underWay('redelivered');
  await set(id, { id: 'a', url: hook.url });
  dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
  await untilOver(id);
  isUp = true;
  await resolve(id);
  dispatched(agent, await agent.nextOfType('dispatch')).result('done');
  const [asked] = await untilOver(id, 3);
  expect(asked).toMatchObject({ event_type: 'task.input-required', status: 'failed' });
  const body = { delivery_id: asked?.delivery_id };
  await client.ok('/webhooks/redeliver', body, RedeliverResponse);
  expect((await untilOver(id, 3))[0]).toMatchObject({ ...body, status: 'delivered' });
  const [first, , , again] = await hook.untilArrived(4);
  expect(again?.raw.equals(first?.raw as Buffer)).toBe(true);
  expect(again?.headers['webhook-id']).toBe(asked?.delivery_id);
});

test('what waits for a receiver that does not answer goes to the new address of its config', async () => {
  const dead = await receiver(status(503));
  const { id, dispatch } = await underWay('moved');
  await set(id, { id: 'a', url: dead.url });
  // The port may be that of an earlier receiver, which has a row already.
  const open = `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until, opened_at)
    VALUES ($1, $2, 5, now() + interval '1 hour', now()) ON CONFLICT (tenant_id, receiver)
    DO UPDATE SET failures = excluded.failures, open_until = excluded.open_until, opened_at = excluded.opened_at`;
  await database.query(open, [tenant_id, receiverOf(dead.url)]);
  dispatch.result('done');
  const waiting = await until(async () => (await logOf(id))[0], { what: 'the notification that waits' });
  expect(waiting).toMatchObject({ status: 'pending', attempts: [], receiver: { state: 'unavailable' } });
  const good = await receiver();
  await set(id, { id: 'a', url: good.url });
  expect(await untilOver(id)).toMatchObject([{ status: 'delivered', url: good.url }]);
  expect(dead.arrived).toEqual([]);
});
