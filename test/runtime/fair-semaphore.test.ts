import { expect, test } from 'vitest';
import { FairSemaphore, type FairSemaphoreOptions } from '../../runtime/fair-semaphore.js';
import { until } from '../setup/until.js';

class Refused extends Error {}

/** Work under a semaphore that runs until it is told to end. */
class Work {
  readonly started: string[] = [];
  readonly ended: string[] = [];
  readonly #ends = new Map<string, () => void>();
  readonly #semaphore: FairSemaphore;

  constructor(bounds: Partial<FairSemaphoreOptions>) {
    this.#semaphore = new FairSemaphore({
      ...{ limit: 2, perKey: 2, waitingMax: 100, refusal: (key) => new Refused(key) },
      ...bounds,
    });
  }

  counts() {
    return this.#semaphore.counts();
  }

  run(name: string): Promise<void> {
    return this.#semaphore.run(name.replace(/\d+$/, ''), async () => {
      this.started.push(name);
      await new Promise<void>((resolve) => this.#ends.set(name, resolve));
      this.ended.push(name);
    });
  }

  async end(name: string): Promise<void> {
    const { length } = this.ended;
    this.#ends.get(name)?.();
    await until(() => this.ended.length > length, { what: `the end of ${name}` });
    await new Promise((done) => setImmediate(done));
  }
}

/** What is run at once under a limit, and the order in which it starts as one after the other ends. */
const ORDERS: { what: string; bounds: Partial<FairSemaphoreOptions>; run: string[]; started: string[] }[] = [
  { what: 'one key has all of it', bounds: {}, run: ['a0', 'a1', 'a2', 'a3'], started: ['a0', 'a1', 'a2', 'a3'] },
  {
    what: 'keys take turns',
    bounds: { limit: 1, perKey: 1 },
    run: ['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'c0'],
    started: ['a0', 'a1', 'b0', 'c0', 'a2', 'b1', 'a3'],
  },
  {
    what: 'what one key may not use is there for the next',
    bounds: { limit: 3, perKey: 2 },
    run: ['a0', 'a1', 'a2', 'a3', 'b0', 'b1'],
    started: ['a0', 'a1', 'b0', 'a2', 'b1', 'a3'],
  },
];

test.each(ORDERS)('$what', async ({ bounds, run, started }) => {
  const work = new Work(bounds);
  const all = run.map((name) => work.run(name));
  for (let place = 0; place < run.length; place += 1) {
    await until(() => work.started.length > place, { what: 'the next to start' });
    await work.end(work.started[place] as string);
  }
  await Promise.all(all);
  expect(work.started).toEqual(started);
});

test('work beyond the bound of its key is refused without having begun, that of others is not', async () => {
  const work = new Work({ limit: 1, perKey: 1, waitingMax: 2 });
  const all = ['a0', 'a1', 'a2'].map((name) => work.run(name));
  await expect(work.run('a3')).rejects.toBeInstanceOf(Refused);
  const other = work.run('b0');
  for (const name of ['a0', 'a1', 'b0', 'a2']) await work.end(name);
  await Promise.all([...all, other]);
  expect(work.started).not.toContain('a3');
});

test('work that waited for as long as it may is refused, counted as such, and leaves its place', async () => {
  const work = new Work({ limit: 1, perKey: 1, waitMaxMs: 50 });
  const first = work.run('a0');
  await expect(work.run('a1')).rejects.toBeInstanceOf(Refused);
  expect(work.counts()).toMatchObject({ waiting: 0, waited: 0, refused: 1 });
  const next = work.run('b0');
  await work.end('a0');
  await work.end('b0');
  await Promise.all([first, next]);
  expect(work.started).toEqual(['a0', 'b0']);
});

test('work that fails gives its place back', async () => {
  const semaphore = new FairSemaphore({ limit: 1, perKey: 1, waitingMax: 1, refusal: () => new Refused() });
  await expect(semaphore.run('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await semaphore.run('a', async () => 'done')).toBe('done');
});

test('only work that has to wait is counted, as waiting, begun or refused', async () => {
  const work = new Work({ limit: 1, perKey: 1, waitingMax: 1, waitMaxMs: 60_000 });
  const first = work.run('a0');
  expect(work.counts()).toEqual({ waiting: 0, waited: 0, waitedMs: 0, refused: 0 });
  const rest = [work.run('a1'), work.run('b0')];
  await expect(work.run('a2')).rejects.toBeInstanceOf(Refused);
  expect(work.counts()).toEqual({ waiting: 2, waited: 0, waitedMs: 0, refused: 1 });
  for (const name of ['a0', 'a1', 'b0']) await work.end(name);
  await Promise.all([first, ...rest]);
  const { waitedMs, ...counts } = work.counts();
  expect(counts).toEqual({ waiting: 0, waited: 2, refused: 1 });
  expect(waitedMs).toBeGreaterThan(0);
});
