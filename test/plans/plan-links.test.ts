import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { webhook } from '../alerts/alert-fixture.js';
import { approveButton, press, SLACK_SECRET } from '../alerts/slack-button.js';
import { echo } from '../setup/agent.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { type Arrived, receiver } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { createPlan, step, untilPlan } from './plan-fixture.js';

const shared = await sharedPlatform();
const { client } = shared.platform;

test('a plan is announced as an approval, and starts by the token of the webhook or by a button in Slack', async () => {
  await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
  const [hook, slack, note] = [await receiver(), await receiver(), await receiver()];
  const channel = { type: 'slack', config: { webhook_url: slack.url, signing_secret: SLACK_SECRET } };
  const notifications = [webhook(hook.url), channel];
  const condition = { event: 'plan.approval_required' };
  const body = { name: 'plans', condition, notifications, approvers: ['U1'] };
  await client.ok('/policies/new_alert', body, AlertRule);

  const one = await createPlan(client, [step('a', 'echo', 'one')], { auto_approve: false });
  const { plan_id, session_id, input_request } = one;
  const [arrived] = (await hook.untilArrived(1)) as [Arrived];
  expect(arrived.body).toMatchObject({
    ...{ event_type: 'plan.approval_required', type: 'approval_required', session_id },
    event: { plan_id, session_id, description: 'a plan', title: 'Start a plan: a plan', policy_id: null, guard: null },
    ...{ request_id: input_request?.request_id, digest: input_request?.digest },
    ...{ callback_token: expect.stringMatching(/^[\w-]{43}$/) },
    resolve_url: `${shared.platform.devJson().base_url}/messages/${plan_id}/resolve`,
  });
  expect(arrived.body).toMatchObject({
    page_url: `${shared.platform.devJson().base_url}/approve/${arrived.body.callback_token}`,
    ...{ prompt: 'The plan starts when it is approved.', expires_at: input_request?.expires_at, input_request },
  });
  const { callback_token, resolve_url } = arrived.body as { callback_token: string; resolve_url: string };
  const answer = await client.raw(
    new URL(resolve_url).pathname,
    JSON.stringify({ callback_token, resolution: 'approved' }),
    { 'content-type': 'application/json' },
  );
  expect(answer).toMatchObject({ status: 200, body: { message_id: plan_id, plan_id, new_state: 'working' } });
  await untilPlan(client, plan_id, 'completed');

  const other = await createPlan(client, [step('a', 'echo', 'two')], { auto_approve: false });
  const posted = await until(() => slack.arrived.find(({ body }) => JSON.stringify(body).includes(other.plan_id)));
  const button = approveButton(posted);
  expect((await press(client, button, { url: note.url, user: 'U2' })()).status).toBe(403);
  const once = press(client, button, { url: note.url });
  expect((await once()).status).toBe(200);
  expect((await once()).status).toBe(409);
  const done = await untilPlan(client, other.plan_id, 'completed');
  expect(done.decisions).toMatchObject([{ principal: { type: 'slack', id: 'U1' }, resolution: 'approved' }]);
  await until(() => note.arrived.some(({ body }) => body.text === 'approved by <@U1>'));
});
