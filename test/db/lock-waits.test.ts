import { expect, test } from 'vitest';
import { LockWaits, lockWaitSlots } from '../../db/connections/lock-waits.js';
import { until } from '../setup/until.js';

const LOCK_TIMEOUT = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });

/** Statements that calls wait for, each with what ends it. */
class Statements {
  readonly open: { calls: string[]; answer: (rows?: string[]) => void; fail: (error: Error) => void }[] = [];
  readonly lockWaits: LockWaits<string>;

  constructor(connections: number) {
    this.lockWaits = new LockWaits<string>({
      run: (json) =>
        new Promise((resolve, reject) => {
          const calls = JSON.parse(json) as string[];
          this.open.push({ calls, answer: (rows = calls) => resolve(rows), fail: reject });
        }),
      isUndone: () => true,
      awaits: (row) => (row.startsWith('later:') ? row : null),
      slots: lockWaitSlots(connections),
    });
  }

  repeat(tenantId: string, name: string, lock: string | null): Promise<string> {
    return new Promise((resolve, reject) =>
      this.lockWaits.repeat({ tenantId, json: JSON.stringify(name), resolve, reject }, lock),
    );
  }

  /** The calls of the statements under way, once there are so many. */
  async calls(count: number): Promise<string[][]> {
    await until(() => this.open.length === count, { what: `${count} statements` });
    return this.open.map(({ calls }) => calls);
  }
}

test('calls for one lock share a statement, those for different locks do not wait for each other', async () => {
  const statements = new Statements(8);
  const answers = [
    statements.repeat('a', 'a0', 'session 1'),
    statements.repeat('a', 'a1', 'session 1'),
    statements.repeat('a', 'a2', 'session 1'),
    statements.repeat('a', 'a3', 'session 2'),
    statements.repeat('b', 'b0', 'session 1'),
  ];
  expect(await statements.calls(3)).toEqual([['a0'], ['a3'], ['b0']]);
  for (const { answer } of statements.open.splice(0)) answer();
  expect(await statements.calls(1)).toEqual([['a1', 'a2']]);
  statements.open.splice(0)[0]?.answer();
  expect(await Promise.all(answers)).toEqual(['a0', 'a1', 'a2', 'a3', 'b0']);
});

test('one tenant has half of the connections, however many locks it waits for', async () => {
  const statements = new Statements(4);
  const ofOne = Array.from({ length: 10 }, (_, place) => statements.repeat('a', `a${place}`, `session ${place}`));
  const waiting = [...ofOne, statements.repeat('b', 'b0', 'session 1')];
  expect(await statements.calls(3)).toEqual([['a0'], ['a1'], ['b0']]);
  statements.open.splice(0, 1)[0]?.answer();
  expect(await statements.calls(3)).toEqual([['a1'], ['b0'], ['a2']]);
  for (let answered = 1; answered < waiting.length; answered += 1) {
    await until(() => statements.open.length > 0, { what: 'a statement' });
    statements.open.shift()?.answer();
  }
  await Promise.all(waiting); // none is refused later, amid other tests
});

/** How the statement of a call that never gets its lock ends. */
const NEVER = [
  { what: 'waits in vain', end: (open: Statements['open'][number]) => open.fail(LOCK_TIMEOUT) },
  { what: 'is answered later', end: (open: Statements['open'][number]) => open.answer(['later:room']) },
];

test.each(NEVER)('a call that $what again and again is refused, and can be sent again', async ({ end }) => {
  const statements = new Statements(1);
  const refused = expect(statements.repeat('a', 'a0', 'session 1')).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    headers: { 'Retry-After': '1' },
  });
  for (let repeat = 0; repeat < 10; repeat += 1) {
    expect(await statements.calls(1)).toEqual([['a0']]);
    for (const open of statements.open.splice(0)) end(open);
  }
  await refused;
  expect(statements.open).toEqual([]);
});

test('of calls that fail together each is made alone, and a failure is its own', async () => {
  const statements = new Statements(4);
  const waiting = statements.repeat('a', 'a0', 'session 1');
  const [sound, broken] = [statements.repeat('a', 'a1', 'session 1'), statements.repeat('a', 'a2', 'session 1')];
  await statements.calls(1);
  statements.open.splice(0)[0]?.answer();
  expect(await waiting).toBe('a0');
  expect(await statements.calls(1)).toEqual([['a1', 'a2']]);
  statements.open.splice(0)[0]?.fail(new Error('a defect'));
  expect(await statements.calls(2)).toEqual([['a1'], ['a2']]);
  statements.open[0]?.answer();
  statements.open[1]?.fail(new Error('the defect'));
  expect(await sound).toBe('a1');
  await expect(broken).rejects.toThrow('the defect');
});

test('calls of one tenant beyond a bound are refused at once', async () => {
  const statements = new Statements(2);
  const waiting = Array.from({ length: 1_000 }, (_, place) => statements.repeat('a', `a${place}`, 'session 1'));
  await expect(statements.repeat('a', 'more', 'session 1')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  const other = statements.repeat('b', 'b0', 'session 1');
  for (let settled = false; !settled; ) {
    await until(() => statements.open.length > 0, { what: 'a statement' });
    for (const { answer, calls } of statements.open.splice(0)) {
      answer();
      settled ||= calls.includes('a999');
    }
  }
  expect(await other).toBe('b0');
  expect(await Promise.all(waiting)).toHaveLength(1_000);
});
