import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Loop, type LoopOptions } from '../../runtime/loop.js';

const START = 1_000_000;
const FAILS = 'a background loop fails; it keeps trying';
const WORKS = 'a background loop works again';

beforeEach(() => {
  vi.useFakeTimers({ now: START });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A loop whose turns end as the script says: by themselves, with a pause, or with an error. The last entry repeats. */
function looping(script: (undefined | number | 'fails')[], options: Partial<LoopOptions> = {}) {
  const turnsAtMs: number[] = [];
  const logged: string[] = [];
  const note = (_fields: unknown, text: string) => void logged.push(text);
  const work = async (): Promise<number> => {
    const step = script[Math.min(turnsAtMs.length, script.length - 1)];
    turnsAtMs.push(Date.now() - START);
    if (step === 'fails') throw new Error('away');
    return step as number;
  };
  const log = { info: note, warn: note } as LoopOptions['log'];
  const loop = new Loop({ name: 'test', intervalMs: 100, work, log, ...options });
  return { loop, turnsAtMs, logged };
}

test.each<[string, Parameters<typeof looping>, number[], string[]]>([
  ['after a pause, and again', [[undefined]], [100, 200, 300], []],
  ['at once where it is immediate', [[undefined], { immediate: true }], [0, 100, 200, 300], []],
  ['after the pause that the work names', [[50, 0, undefined]], [100, 150, 151, 251], []],
  ['after a failure as ever, which is logged once', [['fails', 'fails', 'fails']], [100, 200, 300], [FAILS]],
  ['after failures, and a success is logged once', [['fails', 'fails', undefined]], [100, 200, 300], [FAILS, WORKS]],
])('turns start %s', async (_when, [script, options], turns, logs) => {
  const { loop, turnsAtMs, logged } = looping(script, options);
  loop.start();
  await vi.advanceTimersByTimeAsync(349);
  expect(turnsAtMs).toEqual(turns);
  expect(logged).toEqual(logs);
});

test('a loop counts as failing from a failed turn until one that works, or until it is stopped', async () => {
  const { loop } = looping(['fails', undefined, 'fails']);
  const failing = () => Loop.failing.has(loop);
  loop.start();
  expect(failing()).toBe(false);
  const states: boolean[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await vi.advanceTimersByTimeAsync(101);
    states.push(failing());
  }
  expect(states).toEqual([true, false, true]);
  await loop.stop();
  expect(failing()).toBe(false);
});

test('a call ends the pause', async () => {
  const { loop, turnsAtMs } = looping([undefined]);
  loop.start();
  await vi.advanceTimersByTimeAsync(30);
  loop.wake();
  await vi.advanceTimersByTimeAsync(120);
  expect(turnsAtMs).toEqual([30, 130]);
});

/** A loop with a turn under way, which ends when the test says so. */
async function inTurn() {
  let end: () => void = () => undefined;
  let turns = 0;
  const work = () => {
    turns += 1;
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  };
  const { loop } = looping([], { work, immediate: true });
  loop.start();
  await vi.advanceTimersByTimeAsync(0);
  return { loop, end: () => end(), turns: () => turns };
}

test('a call during a turn has another follow it, and only one', async () => {
  const { loop, end, turns } = await inTurn();
  loop.wake();
  loop.wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(turns()).toBe(1);
  end();
  await vi.advanceTimersByTimeAsync(1);
  expect(turns()).toBe(2);
  end();
  await vi.advanceTimersByTimeAsync(99);
  expect(turns()).toBe(2);
});

test('stop waits for the turn under way, and no other follows, whoever calls', async () => {
  const { loop, end, turns } = await inTurn();
  let stopped = false;
  void loop.stop().then(() => {
    stopped = true;
  });
  loop.wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(stopped).toBe(false);
  end();
  await vi.advanceTimersByTimeAsync(1_000);
  loop.wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect([stopped, turns()]).toEqual([true, 1]);
});

test('a loop that was never started does nothing when it is called', async () => {
  const { loop, turnsAtMs } = looping([undefined]);
  loop.wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(turnsAtMs).toEqual([]);
});
