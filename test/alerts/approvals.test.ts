import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { ErrorBody } from '../../contracts/primitives.js';
import type { Behaviour } from '../setup/agent.js';
import type { Answer } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { type Arrived, type Receiver, receiver } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { deliveriesOf, untilDelivered, webhook } from './alert-fixture.js';
import { approveButton, type Press, press, SLACK_SECRET } from './slack-button.js';

const ASKED = 'message.input_required';
const FORM = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };

/** Asks once, and says what was decided. */
const asks =
  (question: object): Behaviour =>
  (dispatch) => {
    const { resolution } = (dispatch.payload.params.metadata ?? {}) as { resolution?: object };
    if (resolution) dispatch.result(JSON.stringify(resolution));
    else dispatch.ask({ kind: 'approval', title: 'Pay the invoice?', ...question });
  };

const shared = await sharedPlatform();

describe('approvals by callback token', () => {
  const client = () => shared.platform.client;

  /** A rule that hears every question of the tenant, for one test. */
  async function listening(event = ASKED, more: object = {}): Promise<{ to: Receiver; rule: AlertRule }> {
    const to = await receiver();
    const body = { name: event, condition: { event }, notifications: [webhook(to.url)], ...more };
    return { to, rule: await client().ok('/policies/new_alert', body, AlertRule) };
  }
  const forget = ({ rule_id }: AlertRule) => client().post('/policies/delete_alert', { rule_id });

  /** A message of which an agent asks, and the delivery of the question. */
  async function asked({ to }: { to: Receiver }, question: object = {}) {
    const agentType = `asks-${randomUUID().slice(0, 8)}`;
    await joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, asks(question));
    const task = await client().send('go', { metadata: { agent_type: agentType } });
    expect(task.status.state).toBe('input-required');
    const arrived = await until(() =>
      to.arrived.find(({ body }) => (body.event as { message_id: string }).message_id === task.id),
    );
    const { callback_token: token, resolve_url: url } = arrived.body as { callback_token: string; resolve_url: string };
    return { id: task.id, session_id: task.contextId, token, url, arrived };
  }

  /** Answers as an external system does: without an access token. */
  async function answer(url: string, body: object): Promise<Answer> {
    const { pathname } = new URL(url);
    return client().raw(pathname, JSON.stringify(body), { 'content-type': 'application/json' });
  }
  const failureOf = ({ status, body }: Answer) => `${status} ${ErrorBody.parse(body).code}`;

  test('the delivery carries a token that answers its request, once', async () => {
    const listener = await listening();
    const { id, session_id, token, url, arrived } = await asked(listener);
    expect(arrived.body).toMatchObject({
      event_type: ASKED,
      type: 'approval_required',
      session_id,
      event: { message_id: id, session_id, kind: 'approval', source: 'agent', title: 'Pay the invoice?' },
    });
    expect(url).toBe(`${shared.platform.devJson().base_url}/messages/${id}/resolve`);
    expect(token).toMatch(/^[\w-]{43}$/);
    const resolved = await answer(url, { callback_token: token, resolution: 'approved' });
    expect(resolved).toMatchObject({ status: 200, body: { ok: true, message_id: id, resolution: 'approved' } });
    const message = await client().untilState(id, 'completed');
    expect(JSON.parse(message.assistant_output)).toMatchObject({ resolution: 'approved' });
    expect(failureOf(await answer(url, { callback_token: token, resolution: 'approved' }))).toBe(
      '409 ALREADY_RESOLVED',
    );
    const { rule_id } = listener.rule;
    const { approvals } = await client().ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse);
    expect(approvals.map(({ principal }) => principal)).toEqual([{ type: 'callback', id: rule_id }]);
    await forget(listener.rule);
  });

  test('a wrong token is 401, and that of another message too', async () => {
    const listener = await listening();
    const one = await asked(listener);
    const other = await asked(listener);
    const refused = (url: string, callback_token: string) => answer(url, { callback_token, resolution: 'approved' });
    expect(failureOf(await refused(one.url, 'x'.repeat(43)))).toBe('401 unauthorized');
    expect(failureOf(await refused(one.url, other.token))).toBe('401 unauthorized');
    expect(failureOf(await answer(one.url, { resolution: 'approved' }))).toBe('401 unauthorized');
    expect((await refused(one.url, one.token)).status).toBe(200);
    await forget(listener.rule);
  });

  test('an answer that does not fit is 400 and leaves the token unspent', async () => {
    const listener = await listening();
    const { id, url, token } = await asked(listener, { kind: 'form', schema: FORM });
    const give = (body: object) => answer(url, { callback_token: token, ...body });
    expect(failureOf(await give({ resolution: 'perhaps' }))).toBe('400 BAD_REQUEST');
    expect(failureOf(await give({ resolution: { amount: 'much' } }))).toBe('400 BAD_REQUEST');
    expect(failureOf(await give({ resolution: 'submitted', extra: 1 }))).toBe('400 BAD_REQUEST');
    expect((await give({ resolution: { amount: 3 } })).status).toBe(200);
    const message = await client().untilState(id, 'completed');
    expect(JSON.parse(message.assistant_output)).toMatchObject({ data: { amount: 3 } });
    await forget(listener.rule);
  });

  test.each(['callback_tokens', 'input_requests'])('a token whose time ran out, by %s, is 410', async (table) => {
    const listener = await listening();
    const { id, url, token } = await asked(listener);
    await shared.everyTenant.query(`UPDATE ${table} SET expires_at = now() - interval '1 s' WHERE message_id = $1`, [
      id,
    ]);
    const give = () => answer(url, { callback_token: token, resolution: 'approved' });
    expect(failureOf(await give())).toBe('410 CALLBACK_TOKEN_EXPIRED');
    expect((await client().message(id)).state).toBe('input-required');
    await forget(listener.rule);
  });

  test('a token of a deleted tenant is 401', async () => {
    const listener = await listening();
    const { url, token } = await asked(listener);
    const mark = (at: string) =>
      shared.everyTenant.query(`UPDATE tenants SET deleted_at = ${at} WHERE tenant_id = $1`, [shared.tenant_id]);
    await mark('now()');
    const refused = await answer(url, { callback_token: token, resolution: 'approved' });
    await mark('NULL');
    expect(failureOf(refused)).toBe('401 unauthorized');
    expect((await answer(url, { callback_token: token, resolution: 'approved' })).status).toBe(200);
    await forget(listener.rule);
  });

  test('of 50 answers at once one succeeds', async () => {
    const listener = await listening();
    const { id, url, token } = await asked(listener);
    const give = () => answer(url, { callback_token: token, resolution: 'approved' });
    const answers = await Promise.all(Array.from({ length: 50 }, give));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(49);
    await client().untilState(id, 'completed');
    await forget(listener.rule);
  });

  test('what was answered otherwise, or canceled, is 409 for the token', async () => {
    const listener = await listening();
    const one = await asked(listener);
    expect((await client().post(`/messages/${one.id}/resolve`, { resolution: 'approved' })).status).toBe(200);
    const late = await answer(one.url, { callback_token: one.token, resolution: 'rejected' });
    expect(failureOf(late)).toBe('409 ALREADY_RESOLVED');
    const other = await asked(listener);
    expect((await client().post('/messages/cancel', { message_id: other.id })).status).toBe(200);
    const canceled = await answer(other.url, { callback_token: other.token, resolution: 'approved' });
    expect(canceled.status).toBe(409);
    await forget(listener.rule);
  });

  test('two rules get a token each; a rule with * gets none', async () => {
    const exact = [await listening(), await listening()];
    const globs = [await listening('*'), await listening('message.*')];
    const { id, token } = await asked(exact[0] as (typeof exact)[0]);
    const deliveryOf = ({ to }: { to: Receiver }) =>
      until(() =>
        to.arrived.find(
          ({ body }) => body.event_type === ASKED && (body.event as { message_id: string }).message_id === id,
        ),
      );
    const second = await deliveryOf(exact[1] as (typeof exact)[0]);
    expect(second.body.callback_token).toMatch(/^[\w-]{43}$/);
    expect(second.body.callback_token).not.toBe(token);
    for (const glob of globs) {
      const { body } = await deliveryOf(glob);
      expect(body.type).toBe('approval_required');
      expect(body).not.toHaveProperty('callback_token');
    }
    for (const { rule } of [...exact, ...globs]) await forget(rule);
  });

  test('the token is in no list, no log, no row and no event', async () => {
    const listener = await listening();
    const { token, session_id } = await asked(listener);
    await untilDelivered(client(), listener.rule.rule_id);
    expect(JSON.stringify(await deliveriesOf(client(), listener.rule.rule_id))).not.toMatch(
      /callback_token|resolve_url/,
    );
    expect(JSON.stringify((await client().post('/telemetry/get_events', { session_id })).body)).not.toContain(token);
    expect(shared.platform.log()).not.toContain(token);
    const bodies = await shared.database.query<{ body: Buffer }>('SELECT body FROM deliveries', []);
    expect(bodies.length).toBeGreaterThan(0);
    for (const { body } of bodies) expect(body.toString('latin1')).not.toMatch(/callback_token|delivery_id/);
    await forget(listener.rule);
  });

  describe('Slack', () => {
    test('a question is shown with buttons, and a named approver decides by one, once', async () => {
      const slack = await receiver();
      const response = await receiver();
      const tokens = await listening();
      const notifications = [{ type: 'slack', config: { webhook_url: slack.url, signing_secret: SLACK_SECRET } }];
      const body = { name: 'ask', condition: { event: ASKED }, notifications, approvers: ['U1'] };
      const rule = await client().ok('/policies/new_alert', body, AlertRule);
      expect(JSON.stringify(rule)).not.toMatch(new RegExp(`${SLACK_SECRET}|${slack.url}`));
      const { id, token } = await asked(tokens);
      const [arrived] = (await slack.untilArrived(1)) as [Arrived];
      expect(JSON.stringify(arrived.body.blocks)).toContain('Pay the invoice?');
      expect(JSON.stringify(arrived.body.blocks)).not.toContain(token);
      const pressed = (how: Partial<Press> = {}) =>
        press(client(), approveButton(arrived), { url: response.url, ...how });
      expect(failureOf(await pressed({ secret: 'another' })())).toBe('401 unauthorized');
      expect(failureOf(await pressed({ ageSeconds: 301 })())).toBe('401 unauthorized');
      const noted = (text: RegExp) => until(() => response.arrived.find(({ body }) => text.test(String(body.text))));
      expect(failureOf(await pressed({ user: 'U2' })())).toBe('403 forbidden');
      expect((await noted(/^Nothing was decided\. Neither the rule/)).body.response_type).toBe('ephemeral');
      const once = pressed();
      expect((await once()).status).toBe(200);
      expect(failureOf(await once())).toBe('409 ALREADY_RESOLVED');
      expect((await noted(/^Nothing was decided\. The request was already/)).body.response_type).toBe('ephemeral');
      const message = await client().untilState(id, 'completed');
      expect(JSON.parse(message.assistant_output)).toMatchObject({ resolution: 'approved' });
      expect((await noted(/^approved by <@U1>$/)).body).not.toHaveProperty('response_type');
      const [delivery] = await untilDelivered(client(), rule.rule_id);
      expect(delivery?.url).toBe(new URL(slack.url).origin);
      await forget(rule);
      await forget(tokens.rule);
    });

    test('a button decides nothing once somebody has edited the arguments that its message announced', async () => {
      const slack = await receiver();
      const response = await receiver();
      const match = { tools: ['fleet.get_agents'] };
      const policy = { scope: 'tool', name: 'look', decision: 'require_approval', match };
      const evaluator = { approval: { quorum: 2 } };
      const { policy_id } = (await client().ok('/policies/create_policy', { ...policy, evaluator }, PolicyResponse))
        .policy;
      const notifications = [{ type: 'slack', config: { webhook_url: slack.url, signing_secret: SLACK_SECRET } }];
      const body = { name: 'ask', condition: { event: 'policy.approval_required' }, notifications, approvers: ['U1'] };
      const rule = await client().ok('/policies/new_alert', body, AlertRule);
      const agentType = `calls-${randomUUID().slice(0, 8)}`;
      const agent = await joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, ({ payload }) => {
        agent.send('tool_call', { tool: 'fleet.get_agents', arguments: {}, dispatch_id: payload.dispatch_id });
      });
      const { id } = await client().send('go', { metadata: { agent_type: agentType }, blocking: false });
      const [arrived] = (await slack.untilArrived(1)) as [Arrived];
      const edited = { resolution: 'approved', arguments: { agent_type: agentType } };
      const answer = await client().ok(`/messages/${id}/resolve`, edited, ResolveResponse);
      expect(answer.new_state).toBe('input-required');
      expect(failureOf(await press(client(), approveButton(arrived), { url: response.url })())).toBe('409 CONFLICT');
      expect((await client().message(id)).input_request?.approvals).toHaveLength(1);
      expect((await response.untilArrived(1))[0]?.body).toMatchObject({
        response_type: 'ephemeral',
        text: expect.stringMatching(/^Nothing was decided/),
      });
      await client().post('/messages/cancel', { message_id: id });
      await client().post('/policies/delete_policy', { policy_id });
      await forget(rule);
    });

    test('anything else is refused', async () => {
      const post = (body: string, type = 'application/x-www-form-urlencoded') =>
        client().raw('/slack/interactions', body, { 'content-type': type });
      expect(failureOf(await post('payload=nothing'))).toBe('400 BAD_REQUEST');
      expect(failureOf(await post('{}', 'application/json'))).toBe('400 BAD_REQUEST');
      const value = JSON.stringify({ tenant_id: 'ten_x', delivery_id: 'dlv_x', request_id: 'req_x' });
      const unknown = press(client(), { action_id: 'resolve:approved', value }, { url: 'http://127.0.0.1:9' });
      expect(failureOf(await unknown())).toBe('401 unauthorized');
    });
  });
});
