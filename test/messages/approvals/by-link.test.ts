import { expect, test } from 'vitest';
import { createDecisions } from '../../../api/decisions.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { held, calling, outcome, tokenFor } = await approvalsFixture(api);
const { describe: show, decideByLink } = createDecisions({ messages: { core: api.core }, plans: api.plans });
const approve = (token: string) => decideByLink(token, { resolution: 'approved' }, {});

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

test('a link that nobody issued shows nothing; one whose request is over says so', async () => {
  await expect(show('x'.repeat(43))).rejects.toMatchObject({ code: 'unauthorized' });
  await expect(approve('x'.repeat(43))).rejects.toMatchObject({ code: 'unauthorized' });
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
    await expect(approve(token)).rejects.toMatchObject({ code: codes[index] });
});
