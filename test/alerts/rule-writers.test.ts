import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { type OpenQuestion, type RuleWriter, ruleAnswerRefusal } from '../../contracts/permissions.js';
import { slackPrincipal } from '../../messages/input/principals.js';
import { resolveAs } from '../../messages/input/resolve.js';
import { answerMessage } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import type { ApiClient } from '../setup/platform/api-client.js';

const api = await serveApi();
const { held, calling, outcome, byToken, tokenFor, events, ref, person } = await approvalsFixture(api);
const APPROVED = { resolution: 'approved' };

/** Presses a button of a rule of these writers, that names the user or not. */
async function press(id: string, user: string, writers: string[], approvers = [user]): Promise<string> {
  const principal = slackPrincipal(user, { writers, approvers });
  const decided = resolveAs(api.core, ref(id), APPROVED, async () => ({ principal }));
  return decided.then(({ new_state }) => new_state).catch(({ code }) => code);
}

const QUESTION: OpenQuestion = {
  ...{ source: 'policy', by_agent: false, registered_with: 'cred_agent', approvers: [] },
  ...{ sent_with: ['cred_sender'], allow_self: true },
};
const [SENDER, AGENT, FULL] = [
  { credential_id: 'cred_sender', is_full: true },
  { credential_id: 'cred_agent', is_full: false },
  { credential_id: 'cred_agent', is_full: true },
];
test.each<[refused: boolean, what: string, writers: RuleWriter[], question: Partial<OpenQuestion>]>([
  [false, 'the sender wrote the rule', [SENDER], {}],
  [true, 'the sender wrote it, and may not decide', [SENDER], { allow_self: false }],
  [false, 'somebody else wrote it', [AGENT], { allow_self: false }],
  [true, 'one of the writers is the sender', [AGENT, SENDER], { allow_self: false }],
  [true, 'who registered the asking agent wrote it', [AGENT], { source: 'agent', by_agent: true }],
  [false, 'the same with full scope', [FULL], { source: 'agent', by_agent: true }],
  [true, 'who registered the agent that makes a call wrote it', [AGENT], { by_agent: true }],
  [false, 'who registered an agent that does not ask wrote it', [AGENT], { source: 'guard' }],
])('refused is %s where %s', (refused, _what, writers, question) => {
  expect(ruleAnswerRefusal(writers, { ...QUESTION, ...question }) !== null).toBe(refused);
});

test('a rule shows its writers: who made it, and who changed what it sends', async () => {
  const [maker, silencer, mover] = [await person('admin'), await person('admin'), await person('admin')];
  const notifications = [{ type: 'webhook', config: { url: 'https://a.example.com/' } }];
  const body = { name: 'asks', condition: { event: 'message.input_required' }, notifications };
  const { rule_id, writers } = await maker.client.ok('/policies/new_alert', body, AlertRule);
  expect(writers).toEqual([maker.id]);
  const update = ({ client }: { client: ApiClient }, fields: object) =>
    client.ok('/policies/update_alert', { rule_id, ...fields }, AlertRule);
  expect((await update(silencer, { enabled: false, name: 'quiet' })).writers).toEqual([maker.id]);
  expect((await update(mover, { notifications })).writers).toEqual([maker.id, mover.id]);
  expect((await update(maker, { approvers: ['U1'] })).writers).toEqual([maker.id, mover.id]);
});

test('a credential and the tokens of its own rule are one principal, in either order', async () => {
  const [one, other] = [await person('admin'), await person('admin')];
  const first = await held({ quorum: 2 });
  expect(await outcome(one.client, first, APPROVED)).toBe('200 input-required');
  const own = await tokenFor(first, 'rule_own', [one.id]);
  expect(await byToken(first, { ...APPROVED, callback_token: own })).toBe('409 ALREADY_RESOLVED');
  const foreign = await tokenFor(first, 'rule_other', [other.id]);
  expect(await byToken(first, { ...APPROVED, callback_token: foreign })).toBe('200 working');

  const second = await held({ quorum: 2 });
  const token = await tokenFor(second, 'rule_own', [other.id, one.id]);
  expect(await byToken(second, { ...APPROVED, callback_token: token })).toBe('200 input-required');
  expect(await outcome(one.client, second, APPROVED)).toBe('409 ALREADY_RESOLVED');
  expect(await outcome(other.client, second, { resolution: 'rejected' })).toBe('200 failed');
});

test('the sender that may not decide does not decide by a rule of its own either', async () => {
  const sender = await person('admin');
  const id = await held({ allow_self: false }, sender.client);
  const own = { ...APPROVED, callback_token: await tokenFor(id, 'rule_own', [sender.id]) };
  expect(await byToken(id, own)).toBe('403 forbidden');
  expect(await press(id, 'U1', [sender.id])).toBe('forbidden');
  const other = await tokenFor(id, 'rule_other', [(await person('admin')).id]);
  expect(await byToken(id, { ...APPROVED, callback_token: other })).toBe('200 working');
});

test('the credential that registered the asking agent does not answer by a rule of its own', async () => {
  const [owner, other] = [await person('admin'), await person('admin')];
  const task = await api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  const question = { kind: 'approval' as const, title: 'May I?' };
  await answerMessage(api, task.id, { state: 'input-required', artifacts: [], input_request: question });
  await api.database.query('UPDATE agents SET credential_id = $1', [owner.id]);
  const own = await tokenFor(task.id, 'rule_own', [owner.id]);
  expect(await byToken(task.id, { ...APPROVED, callback_token: own })).toBe('403 forbidden');
  const foreign = await tokenFor(task.id, 'rule_other', [other.id]);
  expect(await byToken(task.id, { ...APPROVED, callback_token: foreign })).toBe('200 working');
});

test('Slack users count one by one only where the request names them and full credentials alone wrote the rule', async () => {
  const [admin, full] = [await person('admin'), await person('full')];
  const approvers = ['U1', 'slack:U2'];
  const byAdmin = await held({ quorum: 2, approvers });
  expect(await press(byAdmin, 'U1', [admin.id])).toBe('input-required');
  expect(await press(byAdmin, 'U2', [admin.id])).toBe('ALREADY_RESOLVED');
  expect(await outcome(admin.client, byAdmin, APPROVED)).toBe('409 ALREADY_RESOLVED');
  expect(await press(byAdmin, 'U2', [full.id])).toBe('working');

  const unnamed = await held({ quorum: 2 });
  expect(await press(unnamed, 'U1', [full.id])).toBe('input-required');
  expect(await press(unnamed, 'U2', [full.id])).toBe('ALREADY_RESOLVED');

  const named = await held({ quorum: 3, approvers });
  expect(await press(named, 'U1', [full.id], [])).toBe('input-required');
  expect(await press(named, 'U2', [full.id], [])).toBe('input-required');
  expect(await press(named, 'U3', [full.id], [])).toBe('forbidden');
  expect(await outcome(full.client, named, APPROVED)).toBe('200 working');
});

test('a token answers what its delivery announced; an edit is announced anew', async () => {
  const { id } = await calling({ cents: 5 }, { quorum: 2 });
  const before = await tokenFor(id);
  const asked = async () => (await events(id, '%_required')).length;
  const announced = await asked();
  const edit = { ...APPROVED, arguments: { cents: 9_000 } };
  expect(await outcome((await person('admin')).client, id, edit)).toBe('200 input-required');
  expect(await asked()).toBe(2 * announced);
  const given = JSON.stringify({ ...APPROVED, callback_token: before });
  const unseen = await api.client.raw(`/messages/${id}/resolve`, given, { 'content-type': 'application/json' });
  const body = { code: 'CONFLICT', error: expect.stringContaining('A newer delivery announces them') };
  expect(unseen).toMatchObject({ status: 409, body });
  expect((await api.client.message(id)).input_request?.approvals).toHaveLength(1);
  const { digest } = (await api.client.message(id)).input_request ?? {};
  expect(await byToken(id, { ...APPROVED, callback_token: before, digest })).toBe('200 working');
});
