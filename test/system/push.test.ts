import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { type A2aVersion, type PushNotificationConfig, Task } from '../../contracts/a2a/a2a.js';
import { type Delivery, GetDeliveriesResponse, RedeliverResponse } from '../../contracts/api/deliveries.js';
import { MessageCancelResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { inputOf } from '../../deliveries/delivery-store.js';
import { createPushConfigs, type PushConfigs } from '../../deliveries/push/push-configs.js';
import { createOutbound } from '../../http/outbound.js';
import { createSecrets } from '../../runtime/secrets.js';
import { deliveryWorkflowId } from '../../workflows/definitions.js';
import { type Behaviour, type Dispatched, dispatched, echo, type RawAgent } from '../setup/agent.js';
import { cleanUp } from '../setup/clean-up.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { type Receiver, receiver, status } from '../setup/receiver.js';
import { until } from '../setup/until.js';

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

const KEY = randomBytes(32).toString('base64');

describe.each(PATHS)('push notifications, $way', ({ env }) => {
  let shared: SharedPlatform;
  let configs: PushConfigs;
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  beforeAll(async () => {
    shared = await startPlatform({ ...env, FLEET_SECRET_KEY: KEY });
    const secrets = createSecrets(KEY);
    configs = createPushConfigs({ db: shared.database.db(), outbound, secrets, expect: () => undefined });
    return shared.dispose;
  });

  const join = (agentType: string, behaviour?: Behaviour): Promise<RawAgent> =>
    joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, behaviour);
  const tenant = () => ({ tenant_id: shared.platform.devJson().tenant_id });
  const caller = () => ({ ...tenant(), agent_type: 'credential' });
  const set = (taskId: string, config: PushNotificationConfig, version: A2aVersion = '0.3') =>
    configs.set(caller(), taskId, config, version);

  /** A message that is with its agent and goes on when the test says so. */
  async function underWay(agentType: string): Promise<{ id: string; dispatch: Dispatched; agent: RawAgent }> {
    const agent = await join(agentType);
    const task = await shared.platform.client.send('go', { metadata: { agent_type: agentType }, blocking: false });
    const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
    return { id: task.id, dispatch, agent };
  }

  /** The notifications of a task, the oldest first. */
  const logOf = async (id: string): Promise<Delivery[]> => {
    const body = { task_id: id, page_size: 100 };
    const { deliveries } = await shared.platform.client.ok('/webhooks/get_deliveries', body, GetDeliveriesResponse);
    return deliveries.reverse();
  };
  const untilOver = (id: string, count = 1) =>
    until(
      async () => {
        const rows = await logOf(id);
        return rows.length >= count && rows.every(({ status }) => status !== 'pending') ? rows : undefined;
      },
      { what: `the end of the deliveries of ${id}` },
    );
  /** The workflow of the first notification to a config. */
  const workflowOf = async (id: string, config_id: string) => {
    const [first] = (await logOf(id)).filter((delivery) => delivery.config_id === config_id);
    if (!first) throw new Error('there is no notification');
    const input = { ...tenant(), session_id: '', message_id: id, config_id, ...first };
    return shared.temporal.workflow.getHandle(deliveryWorkflowId(inputOf(input), 1));
  };
  const statesOf = (to: Receiver) => to.arrived.map(({ body }) => Task.parse(body).status.state);

  test('the end of a task is told as the task, with token and credentials', async () => {
    const to = await receiver();
    const { id, dispatch } = await underWay('plain');
    await set(id, { url: to.url, token: 'tok', authentication: { schemes: ['Bearer'], credentials: 'cred' } });
    dispatch.result('done');
    const [first] = await to.untilArrived(1);
    expect(first?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-a2a-notification-token': 'tok',
      authorization: 'Bearer cred',
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
    });
    const task = Task.parse(first?.body);
    expect(first?.headers.traceparent).toContain(`-${task.metadata?.trace_id}-`);
    expect(task).toMatchObject({ id, status: { state: 'completed' } });
    expect(task.artifacts?.[0]?.parts).toMatchObject([{ text: 'done' }]);
    const [log] = await untilOver(id);
    expect(log).toMatchObject({
      ...{ rule_id: null, task_id: id, event_type: 'task.completed', url: to.url, status: 'delivered' },
      attempts: [{ status_code: 200, success: true }],
    });
    expect(first?.headers['webhook-id']).toBe(log?.delivery_id);
    expect(JSON.stringify(log)).not.toMatch(/tok|cred/);
  });

  test('a config that comes with its message is told from the first change on, however quick the agent is', async () => {
    const to = await receiver();
    await join('quick', echo);
    const ids = new Set<string>();
    for (const text of ['a', 'b', 'c']) {
      const pushNotificationConfig = { url: to.url, token: text };
      const task = await shared.platform.client.send(text, {
        metadata: { agent_type: 'quick' },
        pushNotificationConfig,
      });
      ids.add(task.id);
    }
    await to.untilArrived(6);
    for (const id of ids) {
      const mine = to.arrived.map(({ body }) => Task.parse(body)).filter((task) => task.id === id);
      expect(mine.map(({ status: { state } }) => state)).toEqual(['working', 'completed']);
    }
  });

  test('1.0 is told stream responses', async () => {
    const to = await receiver();
    const { id, dispatch } = await underWay('one-oh');
    await set(id, { url: to.url }, '1.0');
    dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
    await to.untilArrived(1);
    await shared.platform.client.ok('/messages/cancel', { message_id: id }, MessageCancelResponse);
    const [asked, ended] = await to.untilArrived(2);
    expect(asked?.body).toMatchObject({ statusUpdate: { taskId: id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } });
    expect(ended?.body).toMatchObject({ task: { id, status: { state: 'TASK_STATE_CANCELED' } } });
  });

  test('every change is told, to each config, in order, as it was', async () => {
    const slow = await receiver((response, attempt) => {
      if (attempt > 1) response.end();
      else
        until(() => quick.arrived.length === 3, { what: 'the others' }).then(
          () => response.end(),
          () => response.end(),
        );
    });
    const quick = await receiver();
    const { id, dispatch, agent } = await underWay('asks');
    await set(id, { id: 'slow', url: slow.url });
    await set(id, { id: 'quick', url: quick.url });
    dispatch.ask({ kind: 'confirmation', title: 'Go on?', prompt: 'Shall I?' });
    await quick.untilArrived(1);
    await shared.platform.client.ok(`/messages/${id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    dispatched(agent, await agent.nextOfType('dispatch')).result('done');
    await slow.untilArrived(3);
    for (const to of [slow, quick]) expect(statesOf(to)).toEqual(['input-required', 'working', 'completed']);
    for (const to of [slow, quick]) {
      const [asked, working] = to.arrived.map(({ body }) => Task.parse(body));
      expect(asked?.status.message?.parts[0]).toMatchObject({ text: 'Shall I?' });
      expect(asked?.status.message?.parts[1]).toMatchObject({ data: { input_request: { title: 'Go on?' } } });
      expect(working?.status.message).toBeUndefined();
      expect(working?.artifacts ?? []).toEqual([]);
    }
  });

  test('500 is tried again, three times in all; 400 is not', async () => {
    const recovers = await receiver((response, attempt) => status(attempt === 1 ? 500 : 204)(response));
    const broken = await receiver(status(503));
    const refuses = await receiver(status(400));
    const { id, dispatch } = await underWay('retried');
    await set(id, { id: 'a', url: recovers.url });
    await set(id, { id: 'b', url: broken.url });
    await set(id, { id: 'c', url: refuses.url });
    dispatch.result('done');
    const rows = await untilOver(id, 3);
    const codes = rows.map(({ config_id, status: end, attempts }) => [
      ...[config_id, end],
      ...attempts.map((attempt) => attempt.status_code),
    ]);
    expect(codes.sort()).toEqual([
      ['a', 'delivered', 500, 204],
      ['b', 'failed', 503, 503, 503],
      ['c', 'failed', 400],
    ]);
    for (const { arrived } of [broken, recovers])
      for (const { raw, headers } of arrived) {
        expect(raw.equals(arrived[0]?.raw as Buffer)).toBe(true);
        expect(headers['webhook-id']).toBe(arrived[0]?.headers['webhook-id']);
      }
    expect(shared.platform.log()).toContain('a delivery was given up');
  });

  test('a redirect is not followed', async () => {
    const target = await receiver();
    const to = await receiver((response) => response.writeHead(302, { location: target.url }).end());
    const { id, dispatch } = await underWay('redirected');
    await set(id, { url: to.url });
    dispatch.result('done');
    expect(await untilOver(id)).toMatchObject([
      { status: 'failed', attempts: [{ status_code: 302, error: 'REDIRECT' }] },
    ]);
    expect(target.arrived).toEqual([]);
  });

  test('nothing is told any more after the config was deleted, not even what was to be tried again', async () => {
    const to = await receiver(status(500));
    const { id, dispatch } = await underWay('deleted');
    await set(id, { id: 'a', url: to.url });
    dispatch.result('done');
    await to.untilArrived(1);
    await configs.delete(caller(), id, 'a');
    await (await workflowOf(id, 'a')).result();
    expect(to.arrived.length).toBeLessThan(3);
    expect(await logOf(id)).toMatchObject([{ status: 'dropped' }]);
    const [{ delivery_id } = { delivery_id: '' }] = await logOf(id);
    expect((await shared.platform.client.post('/webhooks/redeliver', { delivery_id })).status).toBe(409);
  });

  test('an operator sees who is told what, and gives up on it by a cancel', async () => {
    const to = await receiver(status(500));
    const { id, dispatch } = await underWay('operated');
    await set(id, { id: 'a', url: to.url });
    dispatch.result('done');
    await to.untilArrived(1);
    const handle = await workflowOf(id, 'a');
    const shows = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    expect(shows.currentDetails).toMatch(/^Delivers `task.completed` to `a`, attempt \d\.$/);
    await handle.cancel();
    expect(await untilOver(id)).toMatchObject([{ status: 'dropped' }]);
  });

  test('what was given up is sent again by redeliver: the same bytes under the same id, also after the task has changed', async () => {
    let isUp = false;
    const to = await receiver((response) => status(isUp ? 200 : 400)(response));
    const { id, dispatch, agent } = await underWay('redelivered');
    await set(id, { id: 'a', url: to.url });
    dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
    await untilOver(id);
    isUp = true;
    await shared.platform.client.ok(`/messages/${id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    dispatched(agent, await agent.nextOfType('dispatch')).result('done');
    const [asked] = await untilOver(id, 3);
    expect(asked).toMatchObject({ event_type: 'task.input-required', status: 'failed' });
    const body = { delivery_id: asked?.delivery_id };
    await shared.platform.client.ok('/webhooks/redeliver', body, RedeliverResponse);
    expect((await untilOver(id, 3))[0]).toMatchObject({ ...body, status: 'delivered' });
    const [first, , , again] = await to.untilArrived(4);
    expect(again?.raw.equals(first?.raw as Buffer)).toBe(true);
    expect(again?.headers['webhook-id']).toBe(asked?.delivery_id);
    expect(Task.parse(again?.body).status.state).toBe('input-required');
  });

  test('what waits for a receiver that does not answer goes to the new address of its config', async () => {
    const dead = await receiver(status(503));
    const { id, dispatch } = await underWay('moved');
    await set(id, { id: 'a', url: dead.url });
    const origin = new URL(dead.url).origin;
    // The port may be that of an earlier receiver, which has a row already.
    const open = `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until, opened_at)
      VALUES ($1, $2, 5, now() + interval '1 hour', now()) ON CONFLICT (tenant_id, receiver)
      DO UPDATE SET failures = excluded.failures, open_until = excluded.open_until, opened_at = excluded.opened_at`;
    await shared.database.query(open, [tenant().tenant_id, origin]);
    dispatch.result('done');
    const [waiting] = await until(async () => ((await logOf(id)).length > 0 ? logOf(id) : undefined), {
      what: 'the notification that waits',
    });
    expect(waiting).toMatchObject({ status: 'pending', attempts: [], receiver: { state: 'unavailable' } });
    const good = await receiver();
    await set(id, { id: 'a', url: good.url });
    expect(await untilOver(id)).toMatchObject([{ status: 'delivered', url: good.url }]);
    expect(dead.arrived).toEqual([]);
  });

  test('what a crash came before, or cut off, is told after the next start', async () => {
    const before = await receiver();
    const cutOff = await receiver((response, attempt) => {
      if (attempt > 1) response.end();
    });
    const { id, dispatch } = await underWay('crash');
    await set(id, { id: 'before', url: before.url, token: 'told-after-the-crash' });
    await set(id, { id: 'cut off', url: cutOff.url });
    await shared.database.query(HOLD_BACK);
    dispatch.result('done');
    await cutOff.untilArrived(1);
    await shared.platform.kill9();
    await shared.database.query(LET_GO);
    expect(before.arrived).toEqual([]);
    await shared.platform.start();
    for (const to of [before, cutOff]) {
      await until(() => to.arrived.length > (to === cutOff ? 1 : 0), {
        timeoutMs: 90_000,
        what: 'the notification after the crash',
      });
      expect(statesOf(to).at(-1)).toBe('completed');
    }
    expect(await untilOver(id, 2)).toMatchObject([{ status: 'delivered' }, { status: 'delivered' }]);
  });

  test('no secret of all this is in the log', () => {
    const log = shared.platform.log();
    expect(log).toContain('a delivery was given up');
    for (const secret of ['told-after-the-crash', '"tok"', 'Bearer cred']) expect(log).not.toContain(secret);
  });
});
