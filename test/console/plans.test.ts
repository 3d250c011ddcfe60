import { expect, test } from 'vitest';
import { placesOf } from '../../console/plans/graph-layout.js';
import { parsePlansSearch, plansQueryOf } from '../../console/plans/search.js';
import { waitOf } from '../../console/plans/waits.js';
import { type PlanStep, PlansGetRequest } from '../../contracts/api/plans.js';

const NOW = Date.parse('2026-11-28T12:00:30.500Z');

test.each([
  [{}, {}],
  [{ state: 'failed', plan: 'plan_1', step: 'a' }, { state: 'failed' }],
  [
    { time: '1h', session: 'ses_1' },
    { since: '2026-11-28T11:00:00.000Z', session_id: 'ses_1' },
  ],
  [{ state: 'asleep', time: '2h', session: 'x'.repeat(257), plan: 7 }, {}],
])('the address %j asks for %j', (search, query) => {
  const asked = plansQueryOf(parsePlansSearch(search), NOW);
  expect(asked).toEqual(query);
  expect(PlansGetRequest.safeParse(asked).success).toBe(true);
});

const step = (step_id: string, more: Partial<PlanStep>): PlanStep => ({
  ...{ step_id, index: 0, description: '', agent_type: 'a', instance_id: null, skill_id: null, message: [] },
  ...{ depends_on: [], requires_approval: false, timeout_seconds: null, max_attempts: 1, attempts: 0 },
  ...{ message_id: null, state: 'pending', ...more },
});
const worker = { agent_type: 'a', instance_id: 'a-1', since: '2026-11-28T12:00:00.000Z' };
const others = [step('done', { state: 'completed' }), step('open', {})];

test.each<[Partial<PlanStep>, ReturnType<typeof waitOf>]>([
  [{ depends_on: ['done', 'open'] }, { kind: 'steps', ids: ['open'] }],
  [{ depends_on: ['done'] }, { kind: 'turn' }],
  [{ error: { code: 'RATE_LIMITED', message: '' } }, { kind: 'room' }],
  [{ error: { code: 'HANDLER_ERROR', message: '' } }, { kind: 'attempt' }],
  [{ state: 'input-required', worker }, { kind: 'person' }],
  [{ state: 'running' }, { kind: 'agent' }],
  [{ state: 'running', worker }, null],
  [{ state: 'failed' }, null],
  [{ state: 'skipped' }, null],
])('a step with %j waits for %j', (more, wait) => {
  expect(waitOf(step('s', more), others, true)).toEqual(wait);
});

test('nothing starts before its plan is approved', () => {
  expect(waitOf(step('s', {}), others, false)).toEqual({ kind: 'approval' });
});

test('each step is drawn behind those that it depends on', () => {
  const steps = [step('a', {}), step('b', { depends_on: ['a'] }), step('c', { depends_on: ['a', 'b'] })];
  for (const [direction, axis] of [
    ['LR', 'x'],
    ['TB', 'y'],
  ] as const) {
    const { places } = placesOf(steps, direction);
    const at = ['a', 'b', 'c'].map((id) => places.get(id)?.[axis] ?? 0);
    expect(at).toEqual(at.toSorted((one, other) => one - other));
    expect(new Set(at).size).toBe(3);
  }
});
