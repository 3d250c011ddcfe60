import { expect, test } from 'vitest';
import { NewAlertRequest } from '../../contracts/api/alerts.js';

/** Why a condition of a rule is refused; null where it is not. */
function refusal(event: string, filters?: object): string | null {
  const parsed = NewAlertRequest.shape.condition.safeParse({ event, filters });
  return parsed.success ? null : (parsed.error.issues[0]?.message ?? '');
}

test.each([
  ['message.error', { error: 'HANDLER_ERROR' }],
  ['message.error', { session_id: ['ses_1', 'ses_2'] }],
  ['agent.*', { status: 'offline', agent_type: 'a' }],
  ['guard.denied', { tool: null }],
  ['system.alert_triggered', { count: 5 }],
])('%s with %j can match', (event, filters) => {
  expect(refusal(event, filters)).toBeNull();
});

test.each([
  ['a field that the event does not have', 'message.error', { agent_type: 'a' }],
  ['fields of which no event has all', 'agent.*', { status: 'offline', reason: 'gone' }],
  ['a value of another type', 'system.alert_triggered', { count: '5' }],
  ['a value that the field never has', 'message.completed', { role: ['user'] }],
])('%s is refused, and the fields are named', (_what, event, filters) => {
  expect(refusal(event, filters)).toMatch(/no event of .* can match: there are the fields session_id, /);
});

test('an unknown event is refused, and all are named', () => {
  expect(refusal('message.failed')).toMatch(/agent\.registered, .*message\.error.*tenant\.deleted/);
});
