import { expect, test } from 'vitest';
import { webhook } from '../alerts/alert-fixture.js';
import { recordDeliveries } from '../alerts/record-deliveries.js';
import { approveButton, press, slackChannel } from '../alerts/slack-button.js';
import { serveApi } from '../api/served-api.js';
import { decisions } from '../messages/approvals/approvals-fixture.js';
import { type Arrived, receiver } from '../setup/receiver.js';
import { createPlan, readPlan, step } from './plan-fixture.js';

const api = await serveApi({ sequencer: true });
const { client } = api;
const { byToken } = decisions(api);
const { announced, person, ruleBy, sendQueued } = recordDeliveries(api);

test('a plan is announced as an approval, and starts by the token of the webhook or by a button in Slack', async () => {
  const [hook, slack, note] = [await receiver(), await receiver(), await receiver()];
  const channels = [webhook(hook.url), slackChannel(slack.url)];
  const rule = await ruleBy(await person('full'), channels, 'plan.approval_required', ['U1']);
  /** A plan that waits, once `count` deliveries were sent. */
  const proposed = async (count: number) => {
    const plan = await createPlan(client, [step('a', 'echo', 'one')], { auto_approve: false });
    await announced(rule, count);
    await sendQueued();
    return plan;
  };

  const { plan_id, session_id, input_request } = await proposed(2);
  const [{ body }] = hook.arrived as [Arrived];
  const { request_id, digest, expires_at } = input_request ?? {};
  expect(body).toMatchObject({
    ...{ event_type: 'plan.approval_required', type: 'approval_required', session_id },
    event: { plan_id, session_id, description: 'a plan', title: 'Start a plan: a plan', policy_id: null, guard: null },
    ...{ request_id, digest, expires_at, input_request, prompt: 'The plan starts when it is approved.' },
    ...{
      callback_token: expect.stringMatching(/^[\w-]{43}$/),
      page_url: `${api.baseUrl}/approve/${body.callback_token}`,
    },
    resolve_url: `${api.baseUrl}/messages/${plan_id}/resolve`,
  });
  const { callback_token } = body;
  expect(await byToken(plan_id, { callback_token, resolution: 'approved' })).toBe('200 working');
  expect((await readPlan(client, plan_id)).state).toBe('running');

  const other = await proposed(4);
  const button = approveButton(slack.arrived.at(-1) as Arrived);
  expect((await press(client, button, { url: note.url, user: 'U2' })()).status).toBe(403);
  const once = press(client, button, { url: note.url });
  expect((await once()).status).toBe(200);
  expect((await once()).status).toBe(409);
  const started = await readPlan(client, other.plan_id);
  expect(started.state).toBe('running');
  expect(started.decisions).toMatchObject([{ principal: { type: 'slack', id: 'U1' }, resolution: 'approved' }]);
});
