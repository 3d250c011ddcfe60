import { expect, test } from 'vitest';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const fixture = await approvalsFixture(api);
const { held, heldType, calling, caller, person, outcome, byToken, tokenFor, events, step } = fixture;
const APPROVED = { resolution: 'approved' };
const REJECTED = { resolution: 'rejected' };
const approvalsOf = (message_id: string) => fixture.approvalsOf({ message_id });

test('a message that a policy asks about waits on the record, and goes to its agent once it is approved', async () => {
  const id = await held();
  const { state, input_request } = await api.client.message(id);
  expect(state).toBe('input-required');
  expect(input_request).toMatchObject({ kind: 'approval', source: 'policy', quorum: 1, approvals: [] });
  expect(input_request?.policy_id).toMatch(/^pol_/);
  expect((await events(id, '%required')).map(({ event_type }) => event_type).sort()).toEqual([
    'message.input_required',
    'policy.approval_required',
  ]);
  expect((await step(id))?.kind).toBe('person');
  expect(await outcome(api.client, id, { ...APPROVED, comment: 'fine' })).toBe('200 working');
  expect((await step(id))?.kind).toBe('result');
  const [resolved] = await events(id, 'message.resolved');
  expect(resolved?.payload).toMatchObject({ resolution: 'approved', request_id: input_request?.request_id });
});

test('a session that counts on its instance does not while a message of it waits, and counts again with its dispatch', async () => {
  const { agentType } = await heldType();
  const session = await api.client.ok('/sessions/init', { instance_id: agentType, reserve: true }, SessionInitResponse);
  const counts = () => api.database.value('SELECT counted_sessions($1, $2)::int', [api.tenantId, agentType]);
  expect(await counts()).toBe(1);
  const metadata = { agent_type: agentType };
  const { id } = await api.client.send('pay', { contextId: session.session_id, metadata, blocking: false });
  expect((await api.client.message(id)).state).toBe('input-required');
  expect(await counts()).toBe(0);
  expect(await outcome(api.client, id, APPROVED)).toBe('200 working');
  expect((await step(id))?.kind).toBe('result');
  expect(await counts()).toBe(1);
});

test('the credential that registered an agent does not approve its tool calls, unless its scope is full', async () => {
  const { id: registrar, client: itself } = await person('admin');
  const register = (credential_id: string | null) =>
    api.database.query("UPDATE agents SET credential_id = $1 WHERE instance_id = 'worker-1'", [credential_id]);
  const { id } = await calling({ cents: 5 });
  await register(registrar);
  expect(await outcome(itself, id, APPROVED)).toBe('403 forbidden');
  const own = await tokenFor(id, 'rule_own', [registrar]);
  expect(await byToken(id, { ...APPROVED, callback_token: own })).toBe('403 forbidden');
  // Of a message to the agent it is nobody's own doing.
  expect(await outcome(itself, await held(), APPROVED)).toBe('200 working');
  expect(await outcome(await caller('admin'), id, APPROVED)).toBe('200 working');
  await register(null);
});

test('a rejection fails the message, in the transaction of the decision', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { ...REJECTED, comment: 'too dear' })).toBe('200 failed');
  expect(await api.client.message(id)).toMatchObject({ state: 'failed', error: { code: 'APPROVAL_REJECTED' } });
  expect((await events(id)).map(({ event_type }) => event_type)).toContain('message.error');
  expect(await step(id)).toMatchObject({ kind: 'done', state: 'failed', error: { code: 'APPROVAL_REJECTED' } });
  expect(await outcome(api.client, id, APPROVED)).toBe('409 ALREADY_RESOLVED');
});

test('any affirmative or negative word is told as the kind’s own; anything else is 400', async () => {
  const [yes, no] = [await held(), await held()];
  expect(await outcome(api.client, yes, { resolution: 'perhaps' })).toBe('400 BAD_REQUEST');
  expect(await outcome(api.client, yes, { resolution: { decision: 'approve' } })).toBe('200 working');
  expect(await outcome(api.client, no, { resolution: 'declined' })).toBe('200 failed');
  expect((await approvalsOf(yes))[0]?.resolution).toBe('approved');
  expect((await approvalsOf(no))[0]?.resolution).toBe('rejected');
});

test('a quorum is one of distinct principals; one and the same decides once', async () => {
  const id = await held({ quorum: 3 });
  const [first, second] = [await caller('admin'), await caller('full')];
  expect(await outcome(first, id, { ...APPROVED, comment: 'one' })).toBe('200 input-required');
  expect(await outcome(first, id, APPROVED)).toBe('409 ALREADY_RESOLVED');
  expect(await outcome(second, id, APPROVED)).toBe('200 input-required');
  const { state, input_request } = await api.client.message(id);
  expect(state).toBe('input-required');
  expect(input_request?.approvals.map(({ comment }) => comment)).toEqual(['one', undefined]);
  expect(await events(id, 'message.resolved')).toEqual([]);
  expect(await outcome(api.client, id, APPROVED)).toBe('200 working');
  expect(await approvalsOf(id)).toHaveLength(3);
  expect(await events(id, 'message.resolved')).toHaveLength(1);
});

test('one rejection ends a quorum', async () => {
  const id = await held({ quorum: 2 });
  expect(await outcome(await caller('admin'), id, APPROVED)).toBe('200 input-required');
  expect(await outcome(await caller('admin'), id, REJECTED)).toBe('200 failed');
  expect((await approvalsOf(id)).map(({ resolution }) => resolution)).toEqual(['approved', 'rejected']);
});

test('the tokens of one destination are one principal, however many there are and wherever they are used', async () => {
  const id = await held({ quorum: 2 });
  const tokens = [await tokenFor(id, 'rule_1'), await tokenFor(id, 'rule_2')];
  expect(await byToken(id, { ...APPROVED, callback_token: tokens[0] })).toBe('200 input-required');
  expect(await byToken(id, { ...APPROVED, callback_token: tokens[1] })).toBe('409 ALREADY_RESOLVED');
  expect(await byToken(id, { ...APPROVED, callback_token: tokens[0] })).toBe('409 ALREADY_RESOLVED');
  expect(await outcome(await caller('admin'), id, APPROVED)).toBe('200 working');
});

test('tokens of two destinations are two principals where credentials of scope full alone wrote their rule', async () => {
  const { client_id: full } = await api.credentialOf(api.tenantId, ['full']);
  const { client_id: admin } = await api.credentialOf(api.tenantId, ['admin']);
  const both = async (writers: string[]) => {
    const id = await held({ quorum: 2 });
    const tokens = [
      await tokenFor(id, 'rule_1', writers, 'https://a.example'),
      await tokenFor(id, 'rule_1', writers, 'https://b.example'),
    ];
    expect(await byToken(id, { ...APPROVED, callback_token: tokens[0] })).toBe('200 input-required');
    return byToken(id, { ...APPROVED, callback_token: tokens[1] });
  };
  expect(await both([full])).toBe('200 working');
  expect(await both([admin])).toBe('409 ALREADY_RESOLVED');
  expect(await both([full, admin])).toBe('409 ALREADY_RESOLVED');
});

test('a follow-up message does not answer what a policy asks', async () => {
  const id = await held();
  const answer = await api.client.rpc('approve', { taskId: id });
  expect(answer.error?.code).toBe(-32004);
  expect((await api.client.message(id)).state).toBe('input-required');
});

test('of many principals at once a quorum takes as many as it needs', async () => {
  const id = await held({ quorum: 5 });
  const callers = await Promise.all(Array.from({ length: 12 }, () => caller('admin')));
  const answers = await Promise.all(callers.map((one) => outcome(one, id, APPROVED)));
  expect(answers.filter((answer) => answer === '200 input-required')).toHaveLength(4);
  expect(answers.filter((answer) => answer === '200 working')).toHaveLength(1);
  expect(answers.filter((answer) => answer.startsWith('409'))).toHaveLength(7);
  expect(await approvalsOf(id)).toHaveLength(5);
});

test('a tool call that waits keeps its dispatch, which goes on with the decision', async () => {
  const { id, dispatch_id } = await calling({ cents: 5 }, { on_reject: 'tell_agent' });
  expect((await step(id))?.kind).toBe('person');
  expect(await outcome(api.client, id, REJECTED)).toBe('200 working');
  expect(await step(id)).toMatchObject({ kind: 'result', dispatch_id });
  const other = await calling({ cents: 6 });
  expect(await outcome(api.client, other.id, REJECTED)).toBe('200 failed');
  const state = 'SELECT state FROM dispatches WHERE dispatch_id = $1';
  expect(await api.database.value(state, [other.dispatch_id])).toBe('failed');
});
