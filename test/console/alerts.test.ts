import { expect, test } from 'vitest';
import { bodyOf, changedMembers, conditionText, draftOf } from '../../console/alerts/rule-draft.js';
import { deliveriesBody, parseAlertsSearch } from '../../console/alerts/search.js';
import { type AlertRule, NewAlertRequest, UpdateAlertRequest } from '../../contracts/api/alerts.js';

const NOW = Date.parse('2026-11-28T12:00:30.500Z');
const HOOK = { channel_id: 'chn_1', type: 'webhook' as const, enabled: true };
const CONFIG = { recipients: ['ops@example.com'], max_attempts: 4 };
const MAIL = { channel_id: 'chn_2', type: 'email' as const, enabled: false, config: CONFIG };
const RULE: AlertRule = {
  ...{ rule_id: 'rule_1', tenant_id: 'ten_1', name: 'Trouble', description: '', severity: 'warning', enabled: true },
  condition: { event: 'agent.health_changed', filters: { status: ['unhealthy', 'offline'] } },
  notifications: [
    { ...HOOK, config: { url: 'https://a.example/x' }, secrets_set: ['secret'] },
    { ...MAIL, secrets_set: [] },
  ],
  ...{ threshold: 2, window_seconds: 60, cooldown_seconds: 0, approvers: [], writers: [], updated_by: null },
  ...{ created_at: '2026-11-28T12:00:00.000Z', updated_at: '2026-11-28T12:00:00.000Z' },
};

test.each([
  [{}, {}, { status: 'failed' }],
  [{ status: 'all', time: '1h' }, { status: 'all', time: '1h' }, { since: '2026-11-28T11:00:00.000Z' }],
  [
    { status: 'pending', rule: 'rule_1', event_type: 'agent.registered', delivery: 'dlv_1' },
    { status: 'pending', rule: 'rule_1', event_type: 'agent.registered', delivery: 'dlv_1' },
    { status: 'pending', rule_id: 'rule_1', event_type: 'agent.registered' },
  ],
  [{ tab: 'rules', form: 'new' }, { tab: 'rules', form: 'new' }, { status: 'failed' }],
  [{ tab: 'x', status: 'lost', time: '2h', form: 1, rule: '', delivery: 'x'.repeat(201) }, {}, { status: 'failed' }],
])('the address %j is read as %j and asks for %j', (address, search, body) => {
  expect(parseAlertsSearch(address)).toEqual(search);
  expect(deliveriesBody(parseAlertsSearch(address), NOW)).toEqual(body);
});

test('a form gives a rule that the API takes, and only what was changed', () => {
  const draft = draftOf(RULE);
  expect(NewAlertRequest.safeParse(bodyOf(draft)).error).toBeUndefined();
  expect(changedMembers(RULE, draft)).toEqual({});
  const [webhook, email] = draft.channels;
  if (!webhook || !email) throw new Error('there are two channels');
  const changed = changedMembers(RULE, { ...draft, name: 'T', channels: [{ ...webhook, secret: 's' }, email] });
  const hook = { ...HOOK, config: { url: 'https://a.example/x', secret: 's' } };
  expect(changed).toEqual({ name: 'T', notifications: [hook, MAIL] });
  expect(UpdateAlertRequest.safeParse({ rule_id: 'rule_1', ...changed }).error).toBeUndefined();
  expect(() => bodyOf({ ...draft, filters: '{' })).toThrow(SyntaxError);
  expect(conditionText(RULE.condition)).toBe('agent.health_changed where status is unhealthy or offline');
});
