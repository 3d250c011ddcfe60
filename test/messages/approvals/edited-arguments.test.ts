import { expect, test } from 'vitest';
import { PolicyResponse } from '../../../contracts/api/policies/policies.js';
import { digestOf } from '../../../messages/digest.js';
import { askInput } from '../../../messages/input/ask.js';
import { resolveMessage } from '../../../messages/input/resolve.js';
import { newId } from '../../../runtime/ids.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture, EXECUTOR } from './approvals-fixture.js';

const api = await serveApi();
const fixture = await approvalsFixture(api);
const { held, calling, caller, person, outcome, byToken, ref, tokenFor } = fixture;
const approvalsOf = (message_id: string) => fixture.approvalsOf({ message_id });

await api.client.post('/policies/create_policy', {
  scope: 'tool',
  name: 'no large payments',
  decision: 'deny',
  match: { tools: ['pay'], arguments: [{ path: 'cents', op: 'gt', value: 100 }] },
  reason: 'more than a euro',
});

test('what is approved is bound by a digest of the tool, its arguments and its executor, in whatever order they are written', async () => {
  const { id } = await calling({ to: 'anna', cents: 5 });
  const digest = digestOf({ executor: EXECUTOR, arguments: { cents: 5, to: 'anna' }, tool: 'pay' });
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(await outcome(api.client, id, { resolution: 'approved', arguments: { cents: 5, to: 'anna' } })).toBe(
    '200 working',
  );
  expect(await approvalsOf(id)).toMatchObject([{ digest, arguments_changed: false }]);
});

test('edited arguments are approved in the place of those that were asked about, with a digest of their own', async () => {
  const { id } = await calling({ to: 'anna', cents: 5 });
  const edited = { to: 'anna', cents: 3 };
  expect(await outcome(api.client, id, { resolution: 'approved', arguments: edited })).toBe('200 working');
  const digest = digestOf({ tool: 'pay', arguments: edited, executor: EXECUTOR });
  expect(await approvalsOf(id)).toMatchObject([{ digest, arguments_changed: true }]);
  const stored = 'SELECT arguments, digest, answer FROM input_requests WHERE message_id = $1';
  expect(await api.database.query(stored, [id])).toMatchObject([
    { arguments: edited, digest, answer: { arguments: edited } },
  ]);
});

test('what the policies deny nobody approves, with an access token or another; the request stays open and the token unspent', async () => {
  const { id } = await calling({ cents: 5 });
  const body = { resolution: 'approved', arguments: { cents: 101 } };
  const callback_token = await tokenFor(id);
  const { status, body: answer } = await api.client.post(`/messages/${id}/resolve`, body);
  expect([status, answer]).toMatchObject([
    403,
    { code: 'forbidden', error: expect.stringContaining('more than a euro') },
  ]);
  expect(await byToken(id, { ...body, callback_token })).toBe('403 forbidden');
  // Who may not decide learns nothing about the policies.
  const stranger = await (await caller('read')).post(`/messages/${id}/resolve`, body);
  expect(JSON.stringify(stranger.body)).not.toContain('more than a euro');
  expect(await approvalsOf(id)).toEqual([]);
  const [denied, again, ...more] = await api.database.query<{ payload: object }>(
    `SELECT payload FROM events WHERE event_type = 'policy.denied' AND session_id = (SELECT session_id FROM messages WHERE message_id = $1)`,
    [id],
  );
  expect([again?.payload, more]).toEqual([denied?.payload, []]);
  expect(denied?.payload).toMatchObject({ action: 'call', tool: 'pay', reason: 'more than a euro' });
  expect(await byToken(id, { resolution: 'approved', callback_token })).toBe('200 working');
});

test('an edit voids the approvals of other arguments, and who gave one may approve the new ones', async () => {
  const { id } = await calling({ cents: 5 }, { quorum: 2 });
  const [one, other] = [await caller('admin'), await caller('admin')];
  expect(await outcome(one, id, { resolution: 'approved' })).toBe('200 input-required');
  expect(await outcome(other, id, { resolution: 'approved', arguments: { cents: 9 } })).toBe('200 input-required');
  const { input_request } = await api.client.message(id);
  expect(input_request).toMatchObject({ arguments: { cents: 9 } });
  expect(input_request?.approvals).toHaveLength(1);
  expect(await outcome(other, id, { resolution: 'approved' })).toBe('409 ALREADY_RESOLVED');
  expect(await outcome(one, id, { resolution: 'approved' })).toBe('200 working');
  expect((await approvalsOf(id)).map(({ arguments_changed }) => arguments_changed)).toEqual([false, true, false]);
  expect(new Set((await approvalsOf(id)).slice(1).map(({ digest }) => digest)).size).toBe(1);
});

test('only the arguments of a tool call can be edited, and only to approve them', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { resolution: 'approved', arguments: { a: 1 } })).toBe('400 BAD_REQUEST');
  const { id: call } = await calling({ cents: 5 });
  expect(await outcome(api.client, call, { resolution: 'rejected', arguments: { cents: 1 } })).toBe('400 BAD_REQUEST');
  expect(await outcome(api.client, call, { resolution: 'approved', arguments: 7 })).toBe('400 BAD_REQUEST');
  expect((await api.client.message(call)).state).toBe('input-required');
});

test('edited arguments that another policy wants approved are not approved by those whom the first one asked', async () => {
  const policy = {
    scope: 'tool',
    name: 'finance',
    decision: 'require_approval',
    match: { tools: ['pay'], arguments: [{ path: 'cents', op: 'eq', value: 77 }] },
    reason: 'finance looks at these',
    approvers: ['finance'],
  };
  await api.client.post('/policies/create_policy', policy);
  const { id } = await calling({ cents: 5 });
  const body = { resolution: 'approved', arguments: { cents: 77 } };
  const { status, body: answer } = await api.client.post(`/messages/${id}/resolve`, body);
  expect([status, answer]).toMatchObject([403, { error: expect.stringContaining('finance looks at these') }]);
  expect(await approvalsOf(id)).toEqual([]);
  expect(await outcome(api.client, id, { ...body, arguments: { cents: 7 } })).toBe('200 working');
});

test('guards look at edited arguments too', async () => {
  const { id } = await calling({ url: 'https://example.com/' });
  const body = { resolution: 'approved', arguments: { url: 'http://169.254.169.254/latest/meta-data/' } };
  const { status, body: answer } = await api.client.post(`/messages/${id}/resolve`, body);
  expect([status, answer]).toMatchObject([403, { error: expect.stringContaining('The guard egress') }]);
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
});

test('what guards find in the answer of somebody who may not decide is not said and not recorded', async () => {
  await api.client.post('/policies/update_guard', { guard: 'secrets', enabled: true, decision: 'deny' });
  const { id } = await calling({ cents: 5 }, { approvers: ['nobody'] });
  const answer = { resolution: 'approved', comment: `${'AKI'}AZ7Q3M5N1P9R2T4V6` };
  const events = () => api.database.query("SELECT event_type FROM events WHERE event_type = 'guard.denied'");
  const before = await events();
  const { status, body } = await (await caller('read')).post(`/messages/${id}/resolve`, answer);
  expect([status, body]).toMatchObject([403, { error: expect.not.stringContaining('guard') }]);
  expect(await outcome(api.client, 'msg_none', answer)).toBe('404 NOT_FOUND');
  expect(await events()).toEqual(before);
  expect(await outcome(api.client, id, answer)).toBe('403 forbidden');
  expect((await events()).length).toBeGreaterThan(before.length);
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
  expect(await outcome(api.client, id, answer)).toBe('409 ALREADY_RESOLVED');
});

test('what guards and policies find in an answer that comes too late is not said and not recorded', async () => {
  await api.client.post('/policies/update_guard', { guard: 'secrets', enabled: true, decision: 'deny' });
  const { id } = await calling({ cents: 5 });
  await api.database.query("UPDATE input_requests SET expires_at = now() - interval '1 s' WHERE message_id = $1", [id]);
  const denials = () => api.database.query("SELECT event_type FROM events WHERE event_type LIKE '%.denied'");
  const before = await denials();
  for (const late of [{ comment: `${'AKI'}AZ7Q3M5N1P9R2T4V6` }, { arguments: { cents: 500 } }])
    expect(await outcome(api.client, id, { resolution: 'approved', ...late })).toBe('410 CALLBACK_TOKEN_EXPIRED');
  expect(await denials()).toEqual(before);
});

test('who sends the digest of what they have seen approves nothing else; nothing is spent', async () => {
  const { id } = await calling({ cents: 5 }, { quorum: 2 });
  const callback_token = await tokenFor(id);
  const seen = async () => ({ resolution: 'approved', digest: (await api.client.message(id)).input_request?.digest });
  const before = await seen();
  expect(before.digest).toBe(digestOf({ tool: 'pay', arguments: { cents: 5 }, executor: EXECUTOR }));
  const edit = { ...before, arguments: { cents: 9 } };
  expect(await outcome(await caller('admin'), id, edit)).toBe('200 input-required');
  expect(await outcome(api.client, id, before)).toBe('409 CONFLICT');
  expect(await byToken(id, { ...before, callback_token })).toBe('409 CONFLICT');
  expect(await outcome(await caller('read'), id, before)).toBe('403 forbidden');
  expect(await approvalsOf(id)).toHaveLength(1);
  expect(await byToken(id, { ...(await seen()), callback_token })).toBe('200 working');
});

test('edited arguments decide about the request alone for which the policies looked at them', async () => {
  const { id, request } = await calling({ cents: 5 });
  const { claims } = await person('admin');
  const { policies } = api.core;
  const next = { ...request, request_id: newId('req'), tool: 'drop', arguments: { cents: 7 } };
  /** While the policies look at the arguments, the request is approved by somebody else and the agent asks about another call. */
  const decide: typeof policies.decide = async (...asked) => {
    const verdict = await policies.decide(...asked);
    expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
    expect(await api.db.tenant(api.tenantId, (tx) => askInput(tx, ref(id), next))).toBe(true);
    return verdict;
  };
  const racing = { decide, guardsOf: (tenantId: string) => policies.guardsOf(tenantId) } as typeof policies;
  const body = { resolution: 'approved', arguments: { cents: 3 } };
  await expect(resolveMessage({ ...api.core, policies: racing }, claims, id, body)).rejects.toMatchObject({
    code: 'ALREADY_RESOLVED',
  });
  expect((await api.client.message(id)).input_request).toMatchObject({ tool: 'drop', arguments: { cents: 7 } });
});

test('what a policy with a bound would allow is approved without being counted', async () => {
  const bounded = { scope: 'tool', name: 'ten payments', decision: 'allow', match: { tools: ['pay'] }, max_calls: 10 };
  const { policy } = await api.client.ok('/policies/create_policy', { ...bounded, priority: 1 }, PolicyResponse);
  const { id } = await calling({ cents: 5 });
  const edited = { resolution: 'approved', arguments: { cents: 101 } };
  expect(await outcome(api.client, id, edited)).toBe('200 working');
  const { policy_id } = policy;
  const read = await api.client.ok('/policies/get_policy_by_id', { policy_id }, PolicyResponse);
  expect(read.policy.calls_allowed).toBe(0);
  await api.client.post('/policies/delete_policy', { policy_id });
});
