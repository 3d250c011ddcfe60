import { expect, test } from 'vitest';
import { fire, matchLeftBehind, matchShared } from '../../alerts/relay-batch.js';
import type { CompiledRule } from '../../alerts/rule-cache.js';
import type { RuleState } from '../../alerts/thresholds.js';
import type { PositionedEvent } from '../../telemetry/event-reader.js';

const channel = { channel_id: 'chn_1', url: 'https://example.com/', receiver: 'https://example.com', max_attempts: 3 };
const TIMES = { threshold: 1, window_seconds: 60, cooldown_seconds: 0 };

/** A rule with so many channels. */
const ruleWith = (channels: number, fields: Partial<CompiledRule> = {}) =>
  ({
    ...{ tenant_id: 'a', rule_id: 'rule_1', filters: {}, created_at: new Date(0), ...TIMES, ...fields },
    channels: Array(channels).fill(channel),
  }) as CompiledRule;
const ofB = { tenant_id: 'b' };
const eventAt = (position: number, tenant_id = 'a') =>
  ({
    position,
    record: { tenant_id, event_type: 'agent.registered', event: {}, timestamp: new Date(position).toISOString() },
  }) as PositionedEvent;
const rulesOf = (...given: CompiledRule[]) => {
  const of = (tenant: string) => given.filter(({ tenant_id }) => tenant_id === tenant);
  return new Map(given.map(({ tenant_id }) => [tenant_id, new Map([['agent.registered', of(tenant_id)]])]));
};
const compiled = (...given: CompiledRule[]) => ({ rules: rulesOf(...given), uncompiled: new Set<string>() });
const left = (behind: { tenant_id: string; position: number }[]) =>
  behind.map(({ tenant_id, position }) => `${tenant_id} ${position}`);

test.each([
  ['everybody has room', [1, 1], 100, [1, 2, 3, 4, 5, 6], []],
  ['one has not', [10, 1], 20, [1, 2, 3, 4, 6], ['a 4']],
  ['one event is too much', [50, 1], 20, [2, 4, 6], ['a 0']],
  ['nobody has', [7, 7], 7, [1, 2], ['a 2', 'b 3']],
])(
  'of a shared batch each tenant gets its share: %s',
  (_what, [channels = 0, others = 0], deliveries, taken, behind) => {
    const rules = compiled(ruleWith(channels), ruleWith(others, ofB));
    const events = [1, 2, 3, 4, 5, 6].map((position) => eventAt(position, position % 2 === 1 ? 'a' : 'b'));
    const found = matchShared(events, rules, { work: 1_000, deliveries });
    expect(found.matched.map(({ event }) => event.position)).toEqual(taken);
    expect(left(found.behind)).toEqual(behind);
  },
);

test('rules that count many events use up the share of a tenant by their states', () => {
  const counting = Array.from({ length: 20 }, () => ruleWith(1, { threshold: 10_000 }));
  expect(left(matchShared([eventAt(1), eventAt(2)], compiled(...counting)).behind)).toEqual(['a 0']);
});

test('a tenant whose rules are not compiled is left behind with its first event', () => {
  const events = [eventAt(1), eventAt(2, 'b'), eventAt(3)];
  const { matched, behind } = matchShared(events, { rules: rulesOf(ruleWith(1, ofB)), uncompiled: new Set(['a']) });
  expect(matched.map(({ event }) => event.position)).toEqual([2]);
  expect(left(behind)).toEqual(['a 0']);
});

test('a rule matches no event from before it was made', () => {
  const rules = compiled(ruleWith(1, { created_at: new Date(5) }));
  const { matched } = matchShared([eventAt(4), eventAt(5), eventAt(6)], rules);
  expect(matched.map(({ rules }) => rules.length)).toEqual([0, 1, 1]);
});

const FIVE = [1, 2, 3, 4, 5].map((position) => eventAt(position));

test.each([
  ['as many as have room', 2, 7, [1, 2, 3]],
  ['one that has none, alone', 50, 7, [1]],
])('a batch of one tenant takes %s', (_what, channels, deliveries, taken) => {
  const matched = matchLeftBehind(FIVE, rulesOf(ruleWith(channels)), { work: 1_000, deliveries });
  expect(matched.map(({ event }) => event.position)).toEqual(taken);
});

const matchedBy = (...rules: CompiledRule[]) => FIVE.map((event) => ({ event, rules }));

test.each([
  ['all events where their deliveries are few', [ruleWith(1)], 100, 5, 5],
  ['no event after the one that reaches the bound', [ruleWith(2), ruleWith(2)], 7, 2, 4],
  ['one event whatever it causes', [ruleWith(10), ruleWith(10)], 3, 1, 2],
  ['events that nobody asked for', [], 1, 5, 0],
])('a transaction of the relay takes %s', (_what, rules, most, taken, firings) => {
  const fired = fire(matchedBy(...rules), new Map(), most);
  expect([fired.taken, fired.firings.length]).toEqual([taken, firings]);
});

test('an event that is not taken is not counted', () => {
  const counting = ruleWith(1, { rule_id: 'rule_2', threshold: 100 });
  const states = new Map<string, RuleState>([['a rule_2', { counted_ms: [], fired_ms: null }]]);
  expect(fire(matchedBy(ruleWith(3), counting), states, 6).taken).toBe(2);
  expect(states.get('a rule_2')?.counted_ms).toEqual([1, 2]);
});
