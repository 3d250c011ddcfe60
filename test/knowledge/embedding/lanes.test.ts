import { expect, test } from 'vitest';
import { LaneQueue } from '../../../knowledge/embedding/lanes.js';

const queueOf = (counts: { query?: number; inline?: number; bulk?: number }) => {
  const queue = new LaneQueue<string>();
  for (const [lane, count] of Object.entries(counts)) {
    queue.push(
      lane as keyof typeof counts,
      Array.from({ length: count }, (_, n) => `${lane}${n}`),
    );
  }
  return queue;
};

const take = (queue: LaneQueue<string>, count: number) => Array.from({ length: count }, () => queue.next());

test('the more urgent lane comes first, each in its order', () => {
  const queue = queueOf({ bulk: 2, inline: 2, query: 1 });
  expect(take(queue, 6)).toEqual(['query0', 'inline0', 'inline1', 'bulk0', 'bulk1', undefined]);
  expect(queue.isEmpty).toBe(true);
});

test('the least urgent work has one turn in eight', () => {
  const taken = take(queueOf({ query: 100, inline: 100, bulk: 100 }), 24);
  expect(taken.filter((one) => one?.startsWith('bulk'))).toEqual(['bulk0', 'bulk1', 'bulk2']);
  expect(taken.filter((one) => one?.startsWith('query'))).toHaveLength(21);
});

test('what is not wanted any more leaves its lane', () => {
  const queue = queueOf({ bulk: 3 });
  queue.remove('bulk', new Set(['bulk1']));
  expect(queue.waiting('bulk')).toBe(2);
  expect(queue.clear()).toEqual(['bulk0', 'bulk2']);
  expect(queue.isEmpty).toBe(true);
});
