import { expect, test } from 'vitest';
import { windowsOf } from '../../erasure/time-windows.js';

const MINUTE = 60_000;
const at = (created: number, updated = created) => ({
  created_at: new Date(created * MINUTE),
  updated_at: new Date(updated * MINUTE),
});

test.each([
  ['none', [], []],
  ['one: a minute before to ten minutes after', [at(100, 101)], [[99, 111]]],
  ['of one time: one window', [at(100), at(105), at(108)], [[99, 118]]],
  [
    'in any order',
    [at(200), at(100)],
    [
      [99, 110],
      [199, 210],
    ],
  ],
  [
    'a long one takes in those within it',
    [at(100, 300), at(200), at(500)],
    [
      [99, 310],
      [499, 510],
    ],
  ],
])('%s', (_what, messages, windows) => {
  const found = windowsOf(messages).map(({ fromMs, toMs }) => [fromMs / MINUTE, toMs / MINUTE]);
  expect(found).toEqual(windows);
});
