import { expect, test } from 'vitest';
import { shareNext } from '../../runtime/promises/share-next.js';

/** Work whose runs the test ends; a run gives its number. */
function runs() {
  const ends: ((error?: Error) => void)[] = [];
  const call = shareNext(
    () =>
      new Promise<number>((resolve, reject) => {
        const run = ends.length + 1;
        ends.push((error) => (error ? reject(error) : resolve(run)));
      }),
  );
  return { call, ends };
}

test('callers during a run share the one after it', async () => {
  const { call, ends } = runs();
  const first = call();
  const [second, third] = [call(), call()];
  expect(ends).toHaveLength(1);
  ends[0]?.();
  expect(await first).toBe(1);
  await Promise.resolve();
  expect(ends).toHaveLength(2);
  const fourth = call();
  ends[1]?.();
  expect(await Promise.all([second, third])).toEqual([2, 2]);
  ends[2]?.();
  expect(await fourth).toBe(3);
});

test('a failure is that of its callers alone', async () => {
  const { call, ends } = runs();
  const first = call();
  const second = call();
  ends[0]?.(new Error('away'));
  await expect(first).rejects.toThrow('away');
  ends[1]?.();
  expect(await second).toBe(2);
  const third = call();
  ends[2]?.();
  expect(await third).toBe(3);
});
