import { expect, test } from 'vitest';
import { createDecisions } from '../../../api/decisions.js';
import { answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { approvalsOf, held, calling, outcome, sent, tokenFor } = await approvalsFixture(api);
const { describe: show, decideByLink } = createDecisions({ messages: { core: api.core }, plans: api.plans });
const decide = (token: string, resolution: string) => decideByLink(token, { resolution }, { ip: '10.1.2.3' });

test('a link shows what is asked, by whom, with which arguments, and about which message', async () => {
  const { id, request } = await calling({ cents: 5, to: 'anna' });
  const shown = await show(await tokenFor(id));
  expect(shown).toMatchObject({
    state: 'open',
    asked_by: 'the policy “payments”',
    request: { request_id: request.request_id, tool: 'pay', arguments: { cents: 5, to: 'anna' }, kind: 'approval' },
    stage: 'tool',
    subject: {
      kind: 'message',
      message_id: id,
      parts: [{ kind: 'text', text: 'go' }],
      agent: { agent_type: 'worker' },
      sent_by: expect.stringMatching(/^“test” \(cred_/),
    },
  });
  expect(JSON.stringify(shown)).not.toContain('digest');
});

test('what another approver has edited is not approved by whoever saw it before', async () => {
  const { id } = await calling({ cents: 5 }, { quorum: 2 });
  const token = await tokenFor(id);
  const seen = (version: string) => decideByLink(token, { resolution: 'approved' }, { version });
  const { version } = await show(token);
  expect(await outcome(api.client, id, { resolution: 'approved', arguments: { cents: 9 } })).toBe('200 input-required');
  await expect(seen(version)).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await seen((await show(token)).version)).toMatchObject({ new_state: 'working' });
});

test('looking at it decides nothing; deciding by it spends it, as the principal page', async () => {
  const id = await held();
  const token = await tokenFor(id, 'rule_3');
  await show(token);
  await show(token);
  expect((await api.client.message(id)).state).toBe('input-required');
  expect(await decide(token, 'approved')).toMatchObject({ message_id: id, new_state: 'working' });
  expect(await show(token)).toMatchObject({
    state: 'decided',
    standing: { decisions: [{ by: expect.stringContaining('rule'), resolution: 'approved' }] },
  });
  await expect(decide(token, 'approved')).rejects.toMatchObject({ code: 'ALREADY_RESOLVED' });
  expect(await approvalsOf({ message_id: id })).toMatchObject([
    { principal: { type: 'page', id: 'rule_3' }, ip: '10.1.2.3' },
  ]);
});

test('a form of an agent is filled in by a link; what does not fit leaves it unspent', async () => {
  const id = await sent();
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  await answerMessage(api, id, {
    state: 'input-required',
    artifacts: [],
    input_request: { kind: 'form', title: 'How many?', schema },
  });
  const token = await tokenFor(id);
  expect(await show(token)).toMatchObject({ asked_by: 'the agent “worker”', request: { kind: 'form', schema } });
  const fill = (n: unknown) => decideByLink(token, { resolution: 'submitted', data: { n } }, {});
  await expect(fill('many')).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  expect(await fill(3)).toMatchObject({ new_state: 'working' });
});

test('a link that nobody issued shows nothing; one whose request is over says so', async () => {
  await expect(show('x'.repeat(43))).rejects.toMatchObject({ code: 'unauthorized' });
  await expect(decide('x'.repeat(43), 'approved')).rejects.toMatchObject({ code: 'unauthorized' });
  const [other, canceled, late] = [await held(), await held(), await held()];
  const tokens = [await tokenFor(other), await tokenFor(canceled), await tokenFor(late)] as const;
  expect(await outcome(api.client, other, { resolution: 'approved' })).toBe('200 working');
  await api.client.post('/messages/cancel', { message_id: canceled });
  await api.database.query("UPDATE input_requests SET expires_at = now() - interval '1 s' WHERE message_id = $1", [
    late,
  ]);
  expect((await Promise.all(tokens.map(show))).map(({ state }) => state)).toEqual(['decided', 'withdrawn', 'expired']);
  const codes = ['ALREADY_RESOLVED', 'NOT_AWAITING_INPUT', 'CALLBACK_TOKEN_EXPIRED'];
  for (const [index, token] of tokens.entries())
    await expect(decide(token, 'approved')).rejects.toMatchObject({ code: codes[index] });
});
