import { expect, test } from 'vitest';
import { Batcher } from '../../db/batcher.js';
import { until } from '../setup/until.js';

class Away extends Error {}

/** Statements that are under way, each with what ends it. */
class Statements {
  readonly open: { calls: string[]; answer: () => void; fail: (error: Error) => void }[] = [];

  run = (json: string): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const calls = JSON.parse(json) as string[];
      this.open.push({ calls, answer: () => resolve(calls), fail: reject });
    });
}

test('a statement of which nobody knows what became fails its calls, and those that wait do not queue for a database that is away', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.run, (error) => !(error instanceof Away));
  const lost = batcher.call('"lost"');
  await until(() => statements.open.length === 1, { what: 'the statement of the first' });
  const waiting = Array.from({ length: 100 }, (_, place) => batcher.call(`"${place}"`));
  expect(statements.open.map(({ calls }) => calls)).toEqual([['lost']]);
  statements.open.shift()?.fail(new Away());
  await expect(lost).rejects.toBeInstanceOf(Away);
  expect(statements.open.map(({ calls }) => calls)).toEqual(waiting.map((_, place) => [`${place}`]));
  for (const { answer } of statements.open) answer();
  expect(await Promise.all(waiting)).toEqual(waiting.map((_, place) => `${place}`));
  statements.open.length = 0;
  const next = batcher.call('"next"');
  await until(() => statements.open.length === 1, { what: 'the statement of the next' });
  statements.open[0]?.answer();
  expect(await next).toBe('next');
});

test('a statement that does not come back holds up nobody else, and is still taken when it does', async () => {
  const statements = new Statements();
  const batcher = new Batcher<string>(statements.run, () => true);
  const stuck = batcher.call('"stuck"');
  await until(() => statements.open.length === 1, { what: 'the statement that hangs' });
  const next = batcher.call('"next"');
  await until(() => statements.open.length === 2, { what: 'the statement of the next' });
  statements.open[1]?.answer();
  expect(await next).toBe('next');
  statements.open[0]?.answer();
  expect(await stuck).toBe('stuck');
});
