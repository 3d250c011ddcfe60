import { expect, test } from 'vitest';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { PlanResponse } from '../../contracts/api/plans.js';
import { ExportedApproval } from '../../contracts/api/policies/approvals.js';
import { digestOf } from '../../messages/digest.js';
import { newId } from '../../runtime/ids.js';
import { serveApi } from '../api/served-api.js';
import { decisions } from '../messages/approvals/approvals-fixture.js';
import { createPlan, readPlan, step, withPolicy } from './plan-fixture.js';

const api = await serveApi();
const { client } = api;
const { approvalsOf, byToken, caller, outcome, person, tokenFor } = decisions(api);
const steps = [step('a', 'echo', 'first'), step('b', 'echo', '{{steps.a.output}}', { requires_approval: true })];

async function proposed(more: object = {}, by = client) {
  return createPlan(by, steps, { auto_approve: false, ...more });
}

/** A policy that holds every plan back, for one test. */
const heldBack = (approval: object, work: () => Promise<void>) =>
  withPolicy(client, { decision: 'require_approval', evaluator: { approval } }, work);

test('a plan says what is asked; the digest is that of session, description and steps', async () => {
  const plan = await proposed({ max_parallel: 2 });
  const { session_id, description, input_request } = plan;
  const more = { agent: { agent_type: 'echo' }, max_attempts: 1, timeout_seconds: null };
  const text = (text: string) => [{ kind: 'text', text }];
  const graph = [
    { step_id: 'a', description: 'a', ...more, parts: text('first'), depends_on: [], requires_approval: false },
    {
      ...{ step_id: 'b', description: 'b', ...more, parts: text('{{steps.a.output}}') },
      ...{ depends_on: ['a'], requires_approval: true },
    },
  ];
  expect(input_request).toMatchObject({
    ...{ kind: 'approval', source: 'plan', title: 'Start a plan: a plan', quorum: 1, approvals: [] },
    digest: digestOf({ session_id, description, max_parallel: 2, steps: graph }),
  });
  expect((await proposed()).input_request?.digest).not.toBe(input_request?.digest);
});

test('every decision is in the audit trail: who, when, from where, about which digest; also where a plan starts at once', async () => {
  const creator = await caller('read');
  const plan = await proposed({}, creator);
  const { plan_id, input_request } = plan;
  const { plan: approved } = await client.ok('/plans/approve', { plan_id, comment: 'go' }, PlanResponse);
  const expected = {
    ...{ approval_id: expect.stringMatching(/^apv_/), request_id: input_request?.request_id },
    ...{ kind: 'approval', source: 'plan', resolution: 'approved', comment: 'go', arguments_changed: false },
    ...{ principal: { type: 'credential', id: expect.stringMatching(/^cred_/) }, digest: input_request?.digest },
    title: 'Start a plan: a plan',
    decided_at: expect.any(String),
  };
  expect(approved.decisions).toEqual([expected]);
  expect(approved).not.toHaveProperty('input_request');
  expect(await approvalsOf({ plan_id })).toEqual([{ ...expected, ip: '127.0.0.1' }]);
  expect(await approvalsOf({ plan_id }, creator)).toHaveLength(1);
  const stranger = await caller('read');
  expect(await stranger.failure('/messages/get_approvals', { plan_id })).toBe('403 forbidden');
  expect(await client.failure('/messages/get_approvals', { plan_id: newId('plan') })).toBe('404 NOT_FOUND');
  expect(await client.failure('/messages/get_approvals', { plan_id, message_id: 'msg_1' })).toBe('400 BAD_REQUEST');
  expect(await client.failure('/messages/get_approvals', {})).toBe('400 BAD_REQUEST');

  const atOnce = await createPlan(client, steps);
  expect(atOnce).toMatchObject({ state: 'running', decisions: [{ resolution: 'approved' }] });
  const exported = (await client.post('/messages/export_approvals', {})).body as string;
  const lines = exported.split('\n').slice(0, -1);
  const ids = lines.map((line) => ExportedApproval.parse(JSON.parse(line)).plan_id);
  expect(ids).toEqual([plan_id, atOnce.plan_id]);
});

test('a plan is decided by a callback_token at its resolve_url, once', async () => {
  const [one, other] = [await proposed(), await proposed()];
  const callback_token = await tokenFor(one.plan_id, 'rule_7');
  const foreign = await tokenFor(other.plan_id);
  const give = (resolution: unknown, token = callback_token) =>
    byToken(one.plan_id, { resolution, callback_token: token, comment: 'by token' });
  expect(await give('approved', 'x'.repeat(43))).toBe('401 unauthorized');
  expect(await give('approved', foreign)).toBe('401 unauthorized');
  expect(await give('perhaps')).toBe('400 BAD_REQUEST');
  expect(await byToken(one.plan_id, { resolution: 'approved', callback_token, arguments: {} })).toBe('400 BAD_REQUEST');
  const answers = await Promise.all(Array.from({ length: 50 }, () => give({ decision: 'approve' })));
  expect(answers.filter((answer) => answer === '200 working')).toHaveLength(1);
  expect(answers.filter((answer) => answer === '409 ALREADY_RESOLVED')).toHaveLength(49);
  expect((await readPlan(client, one.plan_id)).state).toBe('running');
  expect(await approvalsOf({ plan_id: one.plan_id })).toMatchObject([
    { principal: { type: 'callback', id: 'rule_7' }, comment: 'by token', ip: '127.0.0.1' },
  ]);
  expect(await byToken(other.plan_id, { resolution: 'rejected', callback_token: foreign })).toBe('200 failed');
  expect(await readPlan(client, other.plan_id)).toMatchObject({
    ...{ state: 'rejected', error: { code: 'APPROVAL_REJECTED' } },
    decisions: [{ resolution: 'rejected', principal: { type: 'callback', id: 'rule_1' } }],
  });
});

test('a token is void once its time ran out, and once the plan was canceled', async () => {
  const [late, canceled] = [await proposed(), await proposed()];
  const tokens = [await tokenFor(late.plan_id), await tokenFor(canceled.plan_id)];
  await api.database.query("UPDATE callback_tokens SET expires_at = now() - interval '1 s' WHERE plan_id = $1", [
    late.plan_id,
  ]);
  await client.ok('/plans/cancel', { plan_id: canceled.plan_id }, PlanResponse);
  const approve = (id: string, callback_token = '') => byToken(id, { resolution: 'approved', callback_token });
  expect(await approve(late.plan_id, tokens[0])).toBe('410 CALLBACK_TOKEN_EXPIRED');
  expect(await approve(canceled.plan_id, tokens[1])).toBe('409 ALREADY_TERMINAL');
  const page = await (await fetch(`${api.baseUrl}/approve/${tokens[1]}`)).text();
  expect(page).toContain('its message or plan was canceled');
});

test('an access token resolves a plan too, with its digest, and counts once towards a quorum', async () => {
  await heldBack({ quorum: 2 }, async () => {
    const writer = await person('admin');
    const { plan_id, input_request } = await proposed();
    const { digest, request_id } = input_request ?? {};
    const resolve = (by: typeof client, body: object) => outcome(by, plan_id, { resolution: 'approved', ...body });
    expect(await resolve(client, { digest: 'a'.repeat(64) })).toBe('409 CONFLICT');
    expect(await resolve(client, { request_id: 'req_other' })).toBe('409 ALREADY_RESOLVED');
    expect(await resolve(await caller('read'), {})).toBe('403 forbidden');
    const first = { resolution: 'approved', digest, request_id };
    expect(await client.ok(`/messages/${plan_id}/resolve`, first, ResolveResponse)).toEqual({
      ...{ ok: true, message_id: plan_id, plan_id, new_state: 'input-required', resolution: 'approved' },
    });
    expect(await resolve(client, {})).toBe('409 ALREADY_RESOLVED');
    const byRule = await tokenFor(plan_id, 'rule_2', [writer.id]);
    expect(await byToken(plan_id, { resolution: 'approved', callback_token: byRule })).toBe('200 working');
    expect((await approvalsOf({ plan_id })).map(({ principal }) => principal.type)).toEqual(['credential', 'callback']);
  });
});

test('its creator decides by no way where a policy keeps it out', async () => {
  await heldBack({ allow_self: false }, async () => {
    const foreign = await person('admin');
    const { plan_id } = await proposed();
    const creator = await api.database.value<string>('SELECT credential_id FROM plans WHERE plan_id = $1', [plan_id]);
    const byRuleOf = async (writer = '') => {
      const callback_token = await tokenFor(plan_id, 'rule_3', [writer]);
      return byToken(plan_id, { resolution: 'approved', callback_token });
    };
    expect(await client.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
    expect(await byRuleOf(creator)).toBe('403 forbidden');
    expect(await byRuleOf(foreign.id)).toBe('200 working');
    expect(await foreign.client.failure('/plans/approve', { plan_id })).toBe('409 ALREADY_RESOLVED');
  });
});

test('a credential that registered agents decides about no plan that they propose, unless its scope is full', async () => {
  const registrar = await person('admin');
  const { plan_id } = await proposed();
  const change = 'UPDATE plans SET credential_id = $2, agent_type = $3 WHERE plan_id = $1';
  const own = (agentType: string) => api.database.query(change, [plan_id, registrar.id, agentType]);
  await own('planner');
  expect(await registrar.client.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
  await own('credential');
  expect(await registrar.client.failure('/plans/approve', { plan_id })).toBe('200');
});

test('the page shows the whole plan, and its form decides', async () => {
  const secret = 'the last words of the step';
  const plan = await createPlan(
    client,
    [
      step('facts', 'echo', [
        { kind: 'text', text: `${'x'.repeat(20_000)} ${secret}` },
        { kind: 'data', data: { order: { grams: 50 } } },
      ]),
      step('send', 'echo', 'Send {{steps.facts.output}}', { requires_approval: true, timeout_seconds: 60 }),
    ],
    { auto_approve: false },
  );
  const address = `${api.baseUrl}/approve/${await tokenFor(plan.plan_id, 'rule_9')}`;
  const page = await (await fetch(address)).text();
  for (const said of [
    ...['wants to carry out a plan of 2 steps.', 'The plan asks for your decision.', secret],
    'Send {{steps.facts.output}}',
    ...['<dt>grams</dt><dd>50</dd>', '<h3>1. facts</h3>', '<h3>2. send</h3>', '<dt>agent_type</dt><dd>echo</dd>'],
    ...['<dt>after</dt><dd><ol><li>facts</li></ol></dd>', '<dt>requires_approval</dt><dd>true</dd>'],
    '<dt>timeout_seconds</dt><dd>60</dd>',
  ])
    expect(page).toContain(said);
  expect((await readPlan(client, plan.plan_id)).state).toBe('proposed');
  const answer = await fetch(address, { method: 'POST', body: new URLSearchParams({ resolution: 'rejected' }) });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('The plan ends here.')]);
  expect((await readPlan(client, plan.plan_id)).decisions).toMatchObject([
    { resolution: 'rejected', principal: { type: 'page', id: 'rule_9' } },
  ]);
  expect(await (await fetch(address)).text()).not.toContain(secret);
});

test('decisions about a plan outlive it; comment and address do not', async () => {
  const { plan_id } = await proposed();
  await client.ok('/plans/reject', { plan_id, comment: 'private' }, PlanResponse);
  await api.database.query("UPDATE plans SET ended_at = now() - interval '40 days' WHERE plan_id = $1", [plan_id]);
  await api.database.query("SELECT * FROM purge_plans(now() - interval '30 days', '', '', 1000)", []);
  expect(await client.failure('/plans/get_by_id', { plan_id })).toBe('404 NOT_FOUND');
  const [kept] = await approvalsOf({ plan_id });
  expect(kept).toMatchObject({ resolution: 'rejected', principal: { type: 'credential' } });
  expect(kept).not.toHaveProperty('comment');
  expect(kept).not.toHaveProperty('ip');
});
