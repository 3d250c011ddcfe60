import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { ErrorBody } from '../../contracts/primitives.js';
import type { Answer } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform, type TenantPlatform } from '../setup/platform/shared-platform.js';
import { type Arrived, type Receiver, receiver } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { approveButton, buttonsOf, linkButton, press, SLACK_SECRET } from './slack-button.js';

const FORM = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };
const ASKED = 'message.input_required';

let shared: TenantPlatform;
beforeAll(async () => {
  shared = await sharedPlatform();
  return shared.dispose;
});
const client = () => shared.platform.client;
const failureOf = ({ status, body }: Answer) => `${status} ${ErrorBody.parse(body).code}`;

/** A rule that tells a Slack channel, and where Slack gets the notes about presses. */
async function slackRule(event: string, approvers: string[] = ['U1']) {
  const [slack, notes] = [await receiver(), await receiver()];
  const notifications = [{ type: 'slack', config: { webhook_url: slack.url, signing_secret: SLACK_SECRET } }];
  const body = { name: 'ask', condition: { event }, notifications, approvers };
  const { rule_id } = await client().ok('/policies/new_alert', body, AlertRule);
  const forget = () => client().post('/policies/delete_alert', { rule_id });
  return { slack, notes, rule_id, forget };
}

/** A message of which an agent asks for a form, and says what it was given. */
async function asksForm(): Promise<string> {
  const agentType = `asks-${randomUUID().slice(0, 8)}`;
  await joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, (dispatch) => {
    const { resolution } = (dispatch.payload.params.metadata ?? {}) as { resolution?: object };
    if (resolution) dispatch.result(JSON.stringify(resolution));
    else dispatch.ask({ kind: 'form', title: 'How much?', schema: FORM });
  });
  return (await client().send('go', { metadata: { agent_type: agentType } })).id;
}

/** Asks for a link by the button, as a user. */
const askForLink = (arrived: Arrived, notes: Receiver, user = 'U1') =>
  press(client(), linkButton(arrived), { url: notes.url, user })();

/** The link that was given as the `count`-th, in a note which only its user reads. */
async function linkIn(notes: Receiver, count: number): Promise<string> {
  const linkOf = ({ body }: Arrived) => /<(http[^|]+\/approve\/[\w-]{43})\|/.exec(String(body.text))?.[1];
  const note = await until(() => notes.arrived.filter(linkOf)[count - 1]);
  expect(note.body).toMatchObject({ response_type: 'ephemeral', replace_original: false });
  return linkOf(note) ?? '';
}
const post = (link: string, fields: Record<string, string>) =>
  fetch(link, { method: 'POST', body: new URLSearchParams(fields) });
const principalsOf = async (message_id: string) => {
  const { approvals } = await client().ok('/messages/get_approvals', { message_id }, GetApprovalsResponse);
  return approvals.map(({ principal }) => principal);
};

test('a named approver opens the form by a link of their own and answers it there, as themselves', async () => {
  const { slack, notes, forget } = await slackRule(ASKED);
  const id = await asksForm();
  const [arrived] = (await slack.untilArrived(1)) as [Arrived];
  expect(buttonsOf(arrived).map(({ text }) => text.text)).toEqual(['Open the form']);
  expect(failureOf(await askForLink(arrived, notes, 'U2'))).toBe('403 forbidden');
  const [refused] = await notes.untilArrived(1);
  expect(refused?.body).toMatchObject({ response_type: 'ephemeral', text: expect.stringMatching(/Slack user/) });
  expect((await askForLink(arrived, notes)).status).toBe(200);
  const replaced = await linkIn(notes, 1);
  expect((await askForLink(arrived, notes)).status).toBe(200);
  const link = await linkIn(notes, 2);
  expect((await fetch(replaced)).status).toBe(401);
  const page = await fetch(link);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('How much?');
  expect((await client().message(id)).state).toBe('input-required');
  expect((await post(link, { resolution: 'submitted', 'field.amount': '7' })).status).toBe(200);
  const message = await client().untilState(id, 'completed');
  expect(JSON.parse(message.assistant_output)).toMatchObject({ resolution: 'submitted', data: { amount: 7 } });
  expect(await principalsOf(id)).toEqual([{ type: 'slack', id: 'U1' }]);
  await forget();
});

test('a rule with * shows no way to a form, and one whom the rule names no more cannot use the link', async () => {
  const glob = await slackRule('message.*');
  const exact = await slackRule(ASKED);
  const id = await asksForm();
  const shown = (await glob.slack.untilArrived(1)).at(-1) as Arrived;
  const [arrived] = (await exact.slack.untilArrived(1)) as [Arrived];
  const forged = { ...linkButton(arrived), value: JSON.stringify(JSON.parse(linkButton(arrived).value)) };
  for (const one of glob.slack.arrived) expect(buttonsOf(one)).toEqual([]);
  expect(shown.raw.toString()).not.toContain('/approve/');
  expect((await press(client(), forged, { url: exact.notes.url })()).status).toBe(200);
  const link = await linkIn(exact.notes, 1);
  await client().ok('/policies/update_alert', { rule_id: exact.rule_id, approvers: ['U3'] }, AlertRule);
  expect((await post(link, { resolution: 'submitted', 'field.amount': '7' })).status).toBe(403);
  expect((await client().message(id)).state).toBe('input-required');
  await client().post('/messages/cancel', { message_id: id });
  await glob.forget();
  await exact.forget();
});

test('beside the buttons of an approval the link shows what was cut, and its user counts once with both', async () => {
  const tool = 'fleet.get_agents';
  const long = `type-${'x'.repeat(900)}-end`;
  const policy = { scope: 'tool', name: 'look', decision: 'require_approval', match: { tools: [tool] } };
  const evaluator = { approval: { quorum: 2 } };
  const { policy_id } = (
    await client().ok('/policies/create_policy', { ...policy, evaluator, approvers: ['U1', 'U2'] }, PolicyResponse)
  ).policy;
  const { slack, notes, forget } = await slackRule('policy.approval_required', []);
  const agentType = `calls-${randomUUID().slice(0, 8)}`;
  const agent = await joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, ({ payload }) => {
    agent.send('tool_call', { tool, arguments: { agent_type: long }, dispatch_id: payload.dispatch_id });
  });
  const { id } = await client().send('go', { metadata: { agent_type: agentType }, blocking: false });
  const [arrived] = (await slack.untilArrived(1)) as [Arrived];
  expect(buttonsOf(arrived).map(({ text }) => text.text)).toEqual(['Approve', 'Reject', 'Show everything']);
  expect(arrived.raw.toString()).not.toContain('-end');
  expect((await press(client(), approveButton(arrived), { url: notes.url })()).status).toBe(200);
  await notes.untilArrived(1);
  expect((await askForLink(arrived, notes)).status).toBe(200);
  const own = await linkIn(notes, 1);
  expect(await (await fetch(own)).text()).toContain(long);
  expect((await post(own, { resolution: 'approved' })).status).toBe(409);
  expect((await askForLink(arrived, notes, 'U2')).status).toBe(200);
  expect((await post(await linkIn(notes, 2), { resolution: 'approved' })).status).toBe(200);
  await client().untilState(id, 'working');
  expect(await principalsOf(id)).toEqual(['U1', 'U2'].map((user) => ({ type: 'slack', id: user })));
  await client().post('/messages/cancel', { message_id: id });
  await client().post('/policies/delete_policy', { policy_id });
  await forget();
});
