import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { answerMessage } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import { type Arrived, type Receiver, receiver } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { failureOf } from './alert-fixture.js';
import { recordDeliveries } from './record-deliveries.js';
import { approveButton, buttonsOf, linkButton, type Press, press, slackChannel } from './slack-button.js';

const FORM = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };

const api = await serveApi({ sequencer: true });
const { client } = api;
const { approvalsOf, calling, events, outcome, sent } = await approvalsFixture(api);
const { announced, person, ruleBy, sendQueued } = recordDeliveries(api);

/** A rule that tells a Slack channel, and where Slack gets the notes about presses. */
async function slackRule({ event, approvers = ['U1'] }: { event?: string; approvers?: string[] } = {}) {
  const [slack, notes] = [await receiver(), await receiver()];
  const rule = await ruleBy(await person('full'), [slackChannel(slack.url)], event, approvers);
  /** What the channel shows once the question has been announced. */
  const shown = async (): Promise<Arrived> => {
    await announced(rule);
    await sendQueued();
    return slack.arrived.at(-1) as Arrived;
  };
  return { rule, slack, notes, shown };
}

/** A message of which an agent asks something. */
async function asks(question: NonNullable<AnswerOrFailure['input_request']>): Promise<string> {
  const id = await sent();
  await answerMessage(api, id, { state: 'input-required', artifacts: [], input_request: question });
  return id;
}
const asksForm = () => asks({ kind: 'form', title: 'How much?', schema: FORM });
const principalsOf = async (message_id: string) =>
  (await approvalsOf({ message_id })).map(({ principal, resolution }) => [principal, resolution]);

/** Asks for a link by the button, as a user. */
const askForLink = (arrived: Arrived, notes: Receiver, user = 'U1') =>
  press(client, linkButton(arrived), { url: notes.url, user })();

/** The note that says so. */
const noteIn = (notes: Receiver, text: RegExp) =>
  until(() => notes.arrived.find(({ body }) => text.test(String(body.text))));

/** The link that was given as the `count`-th, in a note which only its user reads. */
async function linkIn(notes: Receiver, count: number): Promise<string> {
  const linkOf = ({ body }: Arrived) => /<(http[^|]+\/approve\/[\w-]{43})\|/.exec(String(body.text))?.[1];
  const note = await until(() => notes.arrived.filter(linkOf)[count - 1]);
  expect(note.body).toMatchObject({ response_type: 'ephemeral', replace_original: false });
  return linkOf(note) ?? '';
}
const post = (link: string, fields: Record<string, string>) =>
  fetch(link, { method: 'POST', body: new URLSearchParams(fields) });

test('a question is shown with buttons, and a named approver decides by one, once', async () => {
  const { notes, shown } = await slackRule();
  const id = await asks({ kind: 'approval', title: 'Pay the invoice?' });
  const arrived = await shown();
  expect(JSON.stringify(arrived.body.blocks)).toContain('Pay the invoice?');
  const pressed = (how: Partial<Press> = {}) => press(client, approveButton(arrived), { url: notes.url, ...how });
  expect(failureOf(await pressed({ secret: 'another' })())).toBe('401 unauthorized');
  expect(failureOf(await pressed({ ageSeconds: 301 })())).toBe('401 unauthorized');
  expect(failureOf(await pressed({ user: 'U2' })())).toBe('403 forbidden');
  expect((await noteIn(notes, /^Nothing was decided\. Neither the rule/)).body.response_type).toBe('ephemeral');
  const once = pressed();
  expect((await once()).status).toBe(200);
  expect(failureOf(await once())).toBe('409 ALREADY_RESOLVED');
  expect((await noteIn(notes, /^Nothing was decided\. The request was already/)).body.response_type).toBe('ephemeral');
  expect((await noteIn(notes, /^approved by <@U1>$/)).body).not.toHaveProperty('response_type');
  expect((await client.message(id)).state).toBe('working');
  expect(await principalsOf(id)).toEqual([[{ type: 'slack', id: 'U1' }, 'approved']]);
});

test('a button decides nothing once somebody has edited the arguments that its message announced', async () => {
  const { notes, shown } = await slackRule();
  const { id } = await calling({ cents: 5 }, { quorum: 2 });
  const arrived = await shown();
  const edited = { resolution: 'approved', arguments: { cents: 9 } };
  expect(await outcome(client, id, edited)).toBe('200 input-required');
  expect(failureOf(await press(client, approveButton(arrived), { url: notes.url })())).toBe('409 CONFLICT');
  expect((await client.message(id)).input_request?.approvals).toHaveLength(1);
  expect((await noteIn(notes, /^Nothing was decided/)).body.response_type).toBe('ephemeral');
});

test('anything else is refused', async () => {
  const posted = (body: string, type = 'application/x-www-form-urlencoded') =>
    client.raw('/slack/interactions', body, { 'content-type': type });
  expect(failureOf(await posted('payload=nothing'))).toBe('400 BAD_REQUEST');
  expect(failureOf(await posted('{}', 'application/json'))).toBe('400 BAD_REQUEST');
  const value = JSON.stringify({ tenant_id: 'ten_x', delivery_id: 'dlv_x', request_id: 'req_x' });
  const unknown = press(client, { action_id: 'resolve:approved', value }, { url: 'http://127.0.0.1:9' });
  expect(failureOf(await unknown())).toBe('401 unauthorized');
});

test('a named approver opens the form by a link of their own and answers it there, as themselves', async () => {
  const { notes, shown } = await slackRule();
  const id = await asksForm();
  const arrived = await shown();
  expect(buttonsOf(arrived).map(({ text }) => text.text)).toEqual(['Open the form']);
  expect(failureOf(await askForLink(arrived, notes, 'U2'))).toBe('403 forbidden');
  expect((await noteIn(notes, /Slack user/)).body.response_type).toBe('ephemeral');
  expect((await askForLink(arrived, notes)).status).toBe(200);
  const replaced = await linkIn(notes, 1);
  expect((await askForLink(arrived, notes)).status).toBe(200);
  const link = await linkIn(notes, 2);
  expect((await fetch(replaced)).status).toBe(401);
  const page = await fetch(link);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('How much?');
  expect((await client.message(id)).state).toBe('input-required');
  expect((await post(link, { resolution: 'submitted', 'field.amount': '7' })).status).toBe(200);
  expect((await client.message(id)).state).toBe('working');
  expect(await principalsOf(id)).toEqual([[{ type: 'slack', id: 'U1' }, 'submitted']]);
});

test('a rule with * shows no way to a form, and one whom the rule names no more cannot use the link', async () => {
  const glob = await slackRule({ event: 'message.*' });
  const exact = await slackRule();
  const id = await asksForm();
  const arrived = await exact.shown();
  expect(glob.slack.arrived.map(({ body }) => JSON.stringify(body)).join()).toContain('How much?');
  for (const one of glob.slack.arrived) {
    expect(buttonsOf(one)).toEqual([]);
    expect(one.raw.toString()).not.toContain('/approve/');
  }
  const forged = { ...linkButton(arrived), value: JSON.stringify(JSON.parse(linkButton(arrived).value)) };
  expect((await press(client, forged, { url: exact.notes.url })()).status).toBe(200);
  const link = await linkIn(exact.notes, 1);
  await client.ok('/policies/update_alert', { rule_id: exact.rule.rule_id, approvers: ['U3'] }, AlertRule);
  expect((await post(link, { resolution: 'submitted', 'field.amount': '7' })).status).toBe(403);
  expect((await client.message(id)).state).toBe('input-required');
});

test('beside the buttons of an approval the link shows what was cut, and its user counts once with both', async () => {
  const long = `type-${'x'.repeat(900)}-end`;
  const { notes, shown } = await slackRule({ approvers: [] });
  const { id } = await calling({ agent_type: long }, { quorum: 2, approvers: ['U1', 'U2'] });
  const arrived = await shown();
  expect(buttonsOf(arrived).map(({ text }) => text.text)).toEqual(['Approve', 'Reject', 'Show everything']);
  expect(arrived.raw.toString()).not.toContain('-end');
  expect((await press(client, approveButton(arrived), { url: notes.url })()).status).toBe(200);
  expect((await askForLink(arrived, notes)).status).toBe(200);
  const own = await linkIn(notes, 1);
  expect(await (await fetch(own)).text()).toContain(long);
  expect((await post(own, { resolution: 'approved' })).status).toBe(409);
  expect((await askForLink(arrived, notes, 'U2')).status).toBe(200);
  expect((await post(await linkIn(notes, 2), { resolution: 'approved' })).status).toBe(200);
  expect(await events(id, 'message.resolved')).toHaveLength(1);
  expect((await principalsOf(id)).map(([principal]) => principal)).toEqual(
    ['U1', 'U2'].map((user) => ({ type: 'slack', id: user })),
  );
});
