import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextMoves, pauseMs, type StepFacts } from '../../plans/steps/next-moves.js';

const NOW = new Date('2026-01-01T12:00:00.000Z');
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000);
const failure = (code: string) => ({ state: 'failed', error: { code, message: 'it failed' } });

/** Steps in the order of their places; each depends on nothing and is pending unless it says otherwise. */
function stepsOf(...given: Partial<StepFacts>[]): StepFacts[] {
  return given.map((each, place) => ({
    ...{ place, state: 'pending', depends_on: [], attempts: 0, max_attempts: 1, retry_at: null, due_at: null },
    ...{ time_left_ms: null, error: null, message: null },
    ...each,
  }));
}

const running = (message: StepFacts['message'], more: Partial<StepFacts> = {}): Partial<StepFacts> => ({
  ...{ state: 'running', attempts: 1, message },
  ...more,
});
const working = { state: 'working', error: null };
const completed = { state: 'completed', error: null };
const done: Partial<StepFacts> = { state: 'completed', attempts: 1, message: completed };
const BROKEN = { code: 'HANDLER_ERROR', message: 'it failed' };
const AGAIN = { max_attempts: 2 };
const moves = (steps: StepFacts[], maxParallel = 4) => nextMoves(steps, maxParallel, NOW);

describe('which steps start', () => {
  test.each<[string, Partial<StepFacts>[], number, number[]]>([
    ['those that depend on nothing', [{}, {}, { depends_on: [0] }], 4, [0, 1]],
    ['no more than there is room for, the first ones first', [{}, {}, {}], 2, [0, 1]],
    ['none beside a step that waits for a human, where one may be under way', [{ state: 'input-required' }, {}], 1, []],
    ['those whose dependencies are all completed', [done, done, { depends_on: [0, 1] }], 4, [2]],
    ['not those that wait for one of them still', [done, running(working), { depends_on: [0, 1] }], 4, []],
    ['not before the pause of a failed attempt has passed', [{ attempts: 1, max_attempts: 2, retry_at: at(1) }], 4, []],
    ['the next attempt after its pause', [{ attempts: 1, max_attempts: 2, retry_at: at(0) }], 4, [0]],
    ['the one whose dependency completes now', [running(completed), { depends_on: [0] }], 4, [1]],
  ])('%s', (_what, given, maxParallel, start) => {
    expect(moves(stepsOf(...given), maxParallel).start).toEqual(start);
  });
});

describe('what becomes of a step', () => {
  test.each<[string, Partial<StepFacts>, Partial<StepFacts>]>([
    ['its message completed', running(completed), { state: 'completed' }],
    ['its message failed', running(failure('HANDLER_ERROR')), { state: 'failed', error: BROKEN }],
    ['it has attempts left', running(failure('HANDLER_ERROR'), AGAIN), { state: 'pending', retry_at: at(1) }],
    ['a human refused it', running(failure('APPROVAL_REJECTED'), AGAIN), { state: 'failed' }],
    ['nobody approved it', running(failure('APPROVAL_EXPIRED'), AGAIN), { state: 'failed' }],
    ['a policy denied it', running(failure('POLICY_DENIED'), AGAIN), { state: 'failed' }],
    ['a guard denied it', running(failure('GUARD_DENIED'), AGAIN), { state: 'failed' }],
    ['its message was canceled', running({ state: 'canceled', error: null }, AGAIN), { state: 'failed' }],
    ['its time is over', running(working, { due_at: at(0), max_attempts: 2 }), { state: 'failed', due_at: null }],
    ['its time is over between attempts', { attempts: 1, retry_at: at(5), due_at: at(-1) }, { state: 'failed' }],
    ['it completed at the last moment', running(completed, { due_at: at(0) }), { state: 'completed' }],
    [
      'it waits for a human: its clock stands',
      running({ state: 'input-required', error: null }, { due_at: at(30) }),
      { state: 'input-required', due_at: null, time_left_ms: 30_000 },
    ],
    [
      'the human has answered: its clock goes on',
      { ...running(working), state: 'input-required', time_left_ms: 30_000 },
      { state: 'running', due_at: at(30), time_left_ms: null },
    ],
  ])('%s', (_what, before, after) => {
    expect(moves(stepsOf(before)).changed).toEqual([expect.objectContaining(after)]);
  });

  test('a step that goes on does not change', () => {
    const found = moves(stepsOf(running(working, { due_at: at(9) })));
    expect(found).toEqual({ changed: [], start: [], end: null, next_at: at(9) });
  });

  test('all that depends on a failed step is skipped; what does not goes on', () => {
    const found = moves(stepsOf(running(failure('HANDLER_ERROR')), { depends_on: [2] }, { depends_on: [0] }, {}));
    expect(found.changed.map(({ place, state }) => [place, state])).toEqual([
      [0, 'failed'],
      [1, 'skipped'],
      [2, 'skipped'],
    ]);
    expect(found).toMatchObject({ start: [3], end: null });
  });
});

describe('the end of a plan', () => {
  test('it is completed when all steps are', () => {
    expect(moves(stepsOf(done, done)).end).toEqual({ state: 'completed' });
  });

  test('it fails when all have ended, with the first failed step', () => {
    const steps = stepsOf(done, running(failure('HANDLER_ERROR')), { depends_on: [1] });
    expect(moves(steps).end).toEqual({ state: 'failed', failed_step: 1, error: BROKEN });
    expect(moves(stepsOf(...steps, running(working))).end).toBeNull();
  });
});

test('the pauses between attempts grow to half a minute', () => {
  expect([1, 2, 3, 6, 9, 100].map(pauseMs)).toEqual([1_000, 2_000, 4_000, 30_000, 30_000, 30_000]);
});

test('whatever fails, every plan comes to its end, no step runs before what it depends on, and none runs beyond the bound', () => {
  const plan = fc.integer({ min: 1, max: 12 }).chain((count) =>
    fc.record({
      edges: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 20 }),
      outcomes: fc.array(fc.constantFrom('completed', 'HANDLER_ERROR', 'APPROVAL_REJECTED', 'canceled'), {
        minLength: 60,
        maxLength: 60,
      }),
      attempts: fc.integer({ min: 1, max: 3 }),
      maxParallel: fc.integer({ min: 1, max: 4 }),
      count: fc.constant(count),
    }),
  );
  fc.assert(
    fc.property(plan, ({ edges, outcomes, attempts, maxParallel, count }) => {
      const dependsOn = (place: number) =>
        edges.flatMap(([one, other]) => (one > other && one === place ? [other] : []));
      let steps = stepsOf(
        ...Array.from({ length: count }, (_, place) => ({ depends_on: dependsOn(place), max_attempts: attempts })),
      );
      let now = NOW;
      let next = 0;
      for (let turn = 0; turn < 200; turn += 1) {
        const found = nextMoves(steps, maxParallel, now);
        steps = steps.map((each) => found.changed.find(({ place }) => place === each.place) ?? each);
        if (found.end) return;
        for (const place of found.start) {
          expect(dependsOn(place).filter((other) => steps[other]?.state !== 'completed')).toEqual([]);
          const outcome = outcomes[next++ % outcomes.length] as string;
          const isEnd = outcome === 'completed' || outcome === 'canceled';
          const message = isEnd ? { state: outcome, error: null } : failure(outcome);
          const begun = { state: 'running' as const, retry_at: null, message };
          steps = steps.map((each) =>
            each.place === place ? { ...each, ...begun, attempts: each.attempts + 1 } : each,
          );
        }
        expect(steps.filter(({ state }) => state === 'running').length).toBeLessThanOrEqual(maxParallel);
        now = found.next_at ?? new Date(now.getTime() + 1);
      }
      throw new Error('the plan does not end');
    }),
  );
});
