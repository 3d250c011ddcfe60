import { describe, expect, test } from 'vitest';
import { passesFilters, typesOf } from '../../alerts/matching.js';
import { countEvent, keptEvents, type RuleState } from '../../alerts/thresholds.js';
import { matchesType } from '../../contracts/api/alerts.js';

const S = 1_000;

/** When a rule fires, and for how many events, given when the events happen: all in seconds. */
function firings(rule: { threshold: number; window_seconds: number; cooldown_seconds: number }, seconds: number[]) {
  let state: RuleState = { counted_ms: [], fired_ms: null };
  const fired = seconds.flatMap((at) => {
    const next = countEvent(rule, state, at * S);
    state = next.state;
    return next.fires === null ? [] : [`${at}: ${next.fires}`];
  });
  return fired.join(', ');
}

describe('a threshold in a sliding window', () => {
  test.each([
    ['is reached', 3, 60, 0, [0, 10, 20], '20: 3'],
    ['is not reached', 3, 60, 0, [0, 10], ''],
    ['slides: the first event has left the window', 3, 60, 0, [0, 30, 60, 70], '70: 3'],
    ['counts anew after it fired', 3, 60, 0, [0, 1, 2, 3, 4, 5], '2: 3, 5: 3'],
    ['is silent while it cools down, and counts on', 2, 60, 30, [0, 1, 5, 10, 32], '1: 2, 32: 3'],
    ['of 1 with a cooldown', 1, 60, 10, [0, 5, 9, 10, 11, 20], '0: 1, 10: 1, 20: 1'],
    ['takes late events, whose time is before others', 3, 60, 0, [10, 0, 20], '20: 3'],
  ])('%s', (_what, threshold, window_seconds, cooldown_seconds, seconds, expected) => {
    expect(firings({ threshold, window_seconds, cooldown_seconds }, seconds)).toBe(expected);
  });

  test.each([
    [1, 0],
    [2, 100],
    [150, 150],
    [10_000, 10_000],
  ])('of %d keeps %d events at most, also while it cools down', (threshold, kept) => {
    const rule = { threshold, window_seconds: 86_400, cooldown_seconds: 604_800 };
    let state: RuleState = { counted_ms: [], fired_ms: 0 };
    for (let at = 1; at <= 10_100; at += 1) state = countEvent(rule, state, at).state;
    expect(state.counted_ms).toEqual(Array.from({ length: kept }, (_, index) => 10_101 - kept + index));
    expect(keptEvents(rule)).toBe(kept);
  });
});

test.each([
  ['agent.registered', 'agent.registered', true],
  ['agent.registered', 'agent.deregistered', false],
  ['agent.*', 'agent.health_changed', true],
  ['agent.*', 'dispatch.failed', false],
  ['*.failed', 'plan.failed', true],
  ['*', 'tenant.deleted', true],
  ['*.approval_*', 'guard.approval_required', true],
  ['a*t.*d', 'agent.registered', true],
  ['agent.reg*gistered', 'agent.registered', false],
  ['message', 'message.error', false],
])('%s matches %s: %s', (pattern, type, expected) => {
  expect(matchesType(pattern, type)).toBe(expected);
});

test('a rule with a threshold never counts alerts, which two rules could cause each other for ever', () => {
  expect(typesOf({ event: 'system.*', threshold: 1 })).toContain('system.alert_triggered');
  expect(typesOf({ event: 'system.*', threshold: 2 })).not.toContain('system.alert_triggered');
});

test.each([
  [undefined, true],
  [{}, true],
  [{ status: 'unhealthy' }, true],
  [{ status: ['offline', 'unhealthy'] }, true],
  [{ status: 'offline' }, false],
  [{ status: 'unhealthy', agent_type: 'b' }, false],
  [{ session_id: 'ses_1' }, true],
  [{ session_id: 'ses_2' }, false],
  [{ missing: 'x' }, false],
  [{ retries: 3 }, true],
  [{ retries: '3' }, false],
])('filters %j: %s', (filters, expected) => {
  const record = { session_id: 'ses_1', event: { status: 'unhealthy', agent_type: 'a', retries: 3 } };
  expect(passesFilters(filters, record)).toBe(expected);
});
