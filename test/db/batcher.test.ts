import { expect, onTestFinished, test, vi } from 'vitest';
import { Batcher } from '../../db/connections/batcher.js';
import { until } from '../setup/until.js';

class Away extends Error {}

/** Statements that are under way, each with what ends it. */
class Statements {
  readonly open: { calls: string[]; answer: () => void; fail: (error: Error) => void }[] = [];
  /** Calls that are to be made again, and the locks that they wait for. */
  readonly repeated: { json: string; lock: string | null }[] = [];
  /** The calls that are answered "later". */
  locked: string[] = [];

  readonly execution = {
    run: (json: string): Promise<string[]> =>
      new Promise((resolve, reject) => {
        const calls = JSON.parse(json) as string[];
        this.open.push({ calls, answer: () => resolve(calls), fail: reject });
      }),
    isUndone: (error: unknown) => !(error instanceof Away),
    awaits: (row: string) => (this.locked.includes(row) ? `lock of ${row}` : null),
    repeat: ({ json }: { json: string }, lock: string | null) => this.repeated.push({ json, lock }),
    lanes: 1,
  };

  /** Answers the statements one after the other until none follows. @returns the calls of each */
  async answerAll(): Promise<string[][]> {
    const answered: string[][] = [];
    for (;;) {
      for (let turn = 0; turn < 3 && this.open.length === 0; turn += 1) await new Promise((done) => setImmediate(done));
      const next = this.open.shift();
      if (!next) return answered;
      answered.push(next.calls);
      next.answer();
    }
  }
}

const call = (batcher: Batcher<string>, name: string) => batcher.call(name.replace(/\d+$/, ''), JSON.stringify(name));
const names = (tenant: string, count: number) => Array.from({ length: count }, (_, place) => `${tenant}${place}`);

test('a statement of which nobody knows what became fails its calls alone: those that wait go in their turns', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.execution);
  const lost = call(batcher, 'lost');
  const waiting = Promise.allSettled([...names('lost', 60), ...names('other', 40)].map((name) => call(batcher, name)));
  statements.open.shift()?.fail(new Away());
  await expect(lost).rejects.toBeInstanceOf(Away);
  await until(() => statements.open.length > 0, { what: 'the next statement' });
  expect(statements.open.map(({ calls }) => calls)).toEqual([[...names('other', 20)]]);
  // While the database is away, each statement fails those of its own.
  statements.open.shift()?.fail(new Away());
  const answered = await statements.answerAll();
  expect(answered.flat()).toHaveLength(80);
  expect(Math.max(...answered.map(({ length }) => length))).toBeLessThanOrEqual(32);
  expect((await waiting).filter(({ status }) => status === 'rejected')).toHaveLength(20);
});

test('a call that has waited for ten seconds is refused, and others are not', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const statements = new Statements();
  const batcher = new Batcher<string>({ ...statements.execution, lanes: 0 });
  const old = call(batcher, 'a0');
  const refused = expect(old).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  vi.advanceTimersByTime(9_000);
  const recent = call(batcher, 'b0');
  vi.advanceTimersByTime(2_000);
  await refused;
  expect(batcher.counts().waiting).toBe(1);
  const late = expect(recent).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  vi.advanceTimersByTime(10_000);
  await late;
  expect(batcher.counts().waiting).toBe(0);
});

test('a statement that does not come back holds up nobody else, and is still taken when it does', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.execution);
  const stuck = call(batcher, 'stuck');
  const [same, other] = [call(batcher, 'stuck2'), call(batcher, 'other')];
  for (const expected of ['other', 'stuck2']) {
    await until(() => statements.open.length === 2, { what: `the statement of ${expected}` });
    expect(statements.open[1]?.calls).toEqual([expected]);
    statements.open.splice(1)[0]?.answer();
  }
  expect(await Promise.all([same, other])).toEqual(['stuck2', 'other']);
  statements.open[0]?.answer();
  expect(await stuck).toBe('stuck');
});

test('calls that would wait for a lock, or whose statement was undone, are repeated by themselves', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.execution);
  statements.locked = ['a2', 'b1'];
  const first = call(batcher, 'a0');
  const done = ['a1', 'a2', 'a3', 'b0', 'b1'].map((name) => call(batcher, name));
  const batches = await statements.answerAll();
  expect(batches).toEqual([['a0'], ['b0', 'b1'], ['a1', 'a2', 'a3']]);
  expect(await Promise.all([first, done[0], done[2], done[3]])).toEqual(['a0', 'a1', 'a3', 'b0']);
  expect(statements.repeated).toEqual([
    { json: '"b1"', lock: 'lock of b1' },
    { json: '"a2"', lock: 'lock of a2' },
  ]);
  void call(batcher, 'a9');
  await until(() => statements.open.length === 1, { what: 'the statement of the next' });
  statements.open.shift()?.fail(new Error('a defect'));
  await until(() => statements.repeated.length === 3, { what: 'the repeat' });
  expect(statements.repeated[2]).toEqual({ json: '"a9"', lock: null });
});

/** What waits, and how the next statements take it. */
const TURNS: { what: string; lanes: number; waiting: string[]; statements: string[][] }[] = [
  { what: 'one tenant: a few go together', lanes: 1, waiting: names('a', 3), statements: [names('a', 3)] },
  {
    what: 'one tenant: of many half go, at most 32',
    lanes: 1,
    waiting: names('a', 80),
    statements: [
      names('a', 80).slice(0, 32),
      names('a', 80).slice(32, 56),
      names('a', 80).slice(56, 68),
      names('a', 80).slice(68, 74),
      names('a', 80).slice(74),
    ],
  },
  {
    what: 'a flood and one call of another: it is in the next statement',
    lanes: 1,
    waiting: [...names('a', 70), 'b0'],
    statements: [[...names('a', 16), 'b0']],
  },
  {
    what: 'several tenants share the last free lane, of each the same share at most',
    lanes: 2,
    waiting: [...names('a', 40), 'b0', ...names('c', 15)],
    statements: [[...names('a', 11), 'b0', ...names('c', 8)]],
  },
];

test.each(TURNS)('$what', async ({ lanes, waiting, statements: expected }) => {
  const statements = new Statements();
  const batcher = new Batcher<string>({ ...statements.execution, lanes });
  // Statements of others, behind which all of it gathers.
  const before = names('z', lanes).map((name, place) => batcher.call(`z${place}`, JSON.stringify(name)));
  const answers = waiting.map((name) => call(batcher, name));
  const first = statements.open.splice(0);
  for (const { answer } of first) answer();
  await Promise.all(before);
  const answered = await statements.answerAll();
  expect(answered.slice(0, expected.length)).toEqual(expected);
  expect(answered.flat().sort()).toEqual([...waiting].sort());
  expect(await Promise.all(answers)).toEqual(waiting);
});

test('a tenant does not wait for the statement of another while a lane is free', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>({ ...statements.execution, lanes: 2 });
  const answers = [...names('a', 50), 'b0'].map((name) => call(batcher, name));
  expect(statements.open.map(({ calls }) => calls)).toEqual([['a0'], ['b0']]);
  await statements.answerAll();
  expect(await Promise.all(answers)).toHaveLength(51);
});

test('calls of a tenant beyond a bound are refused at once, those of others are not', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.execution);
  const flood = names('a', 1_001).map((name) => call(batcher, name));
  await expect(call(batcher, 'a2000')).rejects.toMatchObject({ code: 'RATE_LIMITED', headers: { 'Retry-After': '1' } });
  const other = call(batcher, 'b0');
  const answered = await statements.answerAll();
  expect(answered[1]).toContain('b0');
  expect(await other).toBe('b0');
  expect(await Promise.all(flood)).toHaveLength(1_001);
});

test('statements are counted by their size, and calls that wait or are repeated', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.execution);
  const done = Promise.all(names('a', 1).map((name) => call(batcher, name)));
  const waiting = ['b0', 'b1', 'b2'].map((name) => call(batcher, name));
  expect(batcher.counts()).toMatchObject({ waiting: 3, repeated: 0 });
  statements.locked = ['b1'];
  await statements.answerAll();
  await done;
  await Promise.all([waiting[0], waiting[2]]);
  const { statementsBySize, ...counts } = batcher.counts();
  expect(counts).toEqual({ waiting: 0, repeated: 1 });
  expect(Object.entries(statementsBySize).filter(([, count]) => count > 0)).toEqual([
    ['1', 1],
    ['3', 1],
  ]);
  expect(statements.repeated).toEqual([{ json: '"b1"', lock: 'lock of b1' }]);
});
