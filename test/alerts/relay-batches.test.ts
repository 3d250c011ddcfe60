import { expect, test } from 'vitest';
import { fire } from '../../alerts/relay-batch.js';
import type { CompiledRule } from '../../alerts/rule-cache.js';
import type { RuleState } from '../../alerts/thresholds.js';
import type { PositionedEvent } from '../../telemetry/event-reader.js';

const channel = { channel_id: 'chn_1', url: 'https://example.com/', receiver: 'https://example.com', max_attempts: 3 };
const TIMES = { threshold: 1, window_seconds: 60, cooldown_seconds: 0 };

/** A rule with so many channels. */
function ruleWith(channels: number, fields: Partial<CompiledRule> = {}): CompiledRule {
  return {
    tenant_id: 'ten_1',
    rule_id: 'rule_1',
    ...TIMES,
    ...fields,
    channels: Array(channels).fill(channel),
  } as CompiledRule;
}

const eventAt = (position: number) =>
  ({
    position,
    record: { event_id: `evt_${position}`, timestamp: new Date(position).toISOString() },
  }) as PositionedEvent;
const matchedBy = (...rules: CompiledRule[]) =>
  [1, 2, 3, 4, 5].map((position) => ({ event: eventAt(position), rules }));

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
  const states = new Map<string, RuleState>([['ten_1 rule_2', { counted_ms: [], fired_ms: null }]]);
  expect(fire(matchedBy(ruleWith(3), counting), states, 6).taken).toBe(2);
  expect(states.get('ten_1 rule_2')?.counted_ms).toEqual([1, 2]);
});
