import { expect, test } from 'vitest';
import { bySince, healthOf, latencyText, parseFleetSearch, roomOf, shownTypes } from '../../console/fleet/health.js';
import type { AgentTypeActivity } from '../../contracts/api/agents.js';

const typeOf = (agent_type: string, fields: Partial<AgentTypeActivity> = {}): AgentTypeActivity => ({
  ...{ agent_type, instances: 3, online: 3, draining: 0, unhealthy: 0, in_flight: 0, max_concurrent_sessions: 30 },
  ...{ queue_length: 0, failed_last_hour: 0, failing: 0, ...fields },
});

test.each([
  [{}, 'good', 'Healthy', undefined],
  [{ failing: 1, failing_since: 't1', online: 0 }, 'bad', '1 of 3 failing', 't1'],
  [{ failing: 1, instances: 1, failing_since: 't1' }, 'bad', 'Failing', 't1'],
  [{ online: 0, queue_length: 1, queued_since: 't2' }, 'bad', 'None online, 1 message waits', 't2'],
  [{ online: 0 }, '', 'Offline', undefined],
  [{ unhealthy: 2 }, 'wait', '2 of 3 unhealthy', undefined],
  [{ draining: 3, queue_length: 2 }, 'wait', 'Draining', undefined],
  [{ draining: 2, queue_length: 2, queued_since: 't3' }, 'wait', '2 messages wait', 't3'],
  [{ failed_last_hour: 4 }, 'good', 'Healthy', undefined],
] as const)('%o is %s: %s', (fields, tone, text, since) => {
  expect(healthOf(typeOf('x', fields))).toEqual({ tone, text, ...(since && { since }) });
});

test('what is in trouble comes first, the longest first, then by name', () => {
  const types = [
    typeOf('idle', { online: 0 }),
    typeOf('b-good'),
    typeOf('a-good', { failed_last_hour: 1 }),
    typeOf('queued', { queue_length: 9, queued_since: '2026-01-01' }),
    typeOf('late', { failing: 1, failing_since: '2026-01-03' }),
    typeOf('early', { failing: 1, failing_since: '2026-01-02' }),
  ];
  const named = (search: Parameters<typeof shownTypes>[1]) =>
    shownTypes(types, search).map(({ agent_type }) => agent_type);
  expect(named({})).toEqual(['early', 'late', 'queued', 'a-good', 'b-good', 'idle']);
  expect(named({ show: 'trouble' })).toEqual(['early', 'late', 'a-good']);
  expect(named({ show: 'waiting' })).toEqual(['queued']);
  expect(named({ show: 'offline' })).toEqual(['idle']);
  expect(named({ q: 'GOOD' })).toEqual(['a-good', 'b-good']);
});

test('what has no time comes after what has one', () => {
  expect([undefined, 'b', 'a', undefined].sort(bySince)).toEqual(['a', 'b', undefined, undefined]);
  expect([bySince(undefined, 'a'), bySince('a', undefined), bySince(undefined, undefined)]).toEqual([1, -1, 0]);
});

test.each([
  [{ in_flight: 2, current_sessions: 2, max_concurrent_sessions: 10, max_concurrent_tasks: 4 }, 2, 4],
  [{ in_flight: 1, current_sessions: 9, max_concurrent_sessions: 10, max_concurrent_tasks: 4 }, 9, 10],
  [{ in_flight: 5, current_sessions: 3, max_concurrent_sessions: 10, max_concurrent_tasks: 0 }, 3, 10],
  [{ in_flight: 5, current_sessions: 3, max_concurrent_sessions: 0, max_concurrent_tasks: 0 }, 5, null],
])('of %o the nearest bound is shown', (agent, used, of) => {
  expect(roomOf(agent)).toEqual({ used, of });
});

test.each([
  [null, '–'],
  [0.4, '0 ms'],
  [999, '999 ms'],
  [1_840, '1.8 s'],
  [150_000, '2.5 min'],
])('%s ms reads %s', (ms, text) => expect(latencyText(ms)).toBe(text));

test('an address that anybody wrote gives only what fits', () => {
  const search = { q: 'x'.repeat(257), show: 'other', type: 'shop', instance: 7, more: 'y' };
  expect(parseFleetSearch(search)).toEqual({ type: 'shop' });
  expect(parseFleetSearch({ show: 'trouble', instance: 'shop-1' })).toEqual({ show: 'trouble', instance: 'shop-1' });
});
