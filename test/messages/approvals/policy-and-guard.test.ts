import { expect, test } from 'vitest';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { heldType, caller, outcome, events } = await approvalsFixture(api);

/** Made up; in two pieces so that scanners of repositories do not take it for a real one. */
const SECRET = `${'AKI'}AZ7Q3M5N1P9R2T4V6`;

test('where a policy and a guard ask about one message, both say why, and who decides may decide about both', async () => {
  await api.client.post('/policies/update_guard', { guard: 'secrets', enabled: true, decision: 'require_approval' });
  const scope = 'read';
  const { agentType } = await heldType({
    approvers: [scope],
    quorum: 2,
    timeout_seconds: 90_000,
    escalate_to: [scope],
  });
  const options = { metadata: { agent_type: agentType }, blocking: false };
  const task = await api.client.send(`Use ${SECRET}`, options);

  const { input_request } = await api.client.message(task.id);
  expect(input_request).toMatchObject({
    source: 'policy',
    policy_id: expect.any(String),
    guard: 'secrets',
    prompt: 'People look at these.\nThe content holds an AWS access key.',
    quorum: 2,
  });
  expect(input_request).not.toHaveProperty('approvers');
  const { requested_at, expires_at } = input_request as { requested_at: string; expires_at: string };
  expect(Date.parse(expires_at) - Date.parse(requested_at)).toBe(86_400_000);
  expect(await events(task.id, '%.approval_required')).toMatchObject([
    { event_type: 'policy.approval_required', payload: { policy_name: `ask about ${agentType}` } },
    { event_type: 'guard.approval_required', payload: { guard: 'secrets', path: 'parts[0].text' } },
  ]);

  expect(await outcome(await caller(scope), task.id, { resolution: 'approved' })).toBe('403 forbidden');
  expect(await outcome(await caller('admin'), task.id, { resolution: 'approved' })).toBe('200 input-required');
  expect(await outcome(api.client, task.id, { resolution: 'approved' })).toBe('200 working');

  const harmless = await api.client.send('Use nothing', options);
  expect((await api.client.message(harmless.id)).input_request).toMatchObject({ approvers: [scope] });
});
