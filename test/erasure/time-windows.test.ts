import { expect, test } from 'vitest';
import { partsAtWork, windowsOf } from '../../erasure/time-windows.js';

const MINUTE = 60_000;
const minute = (count: number) => new Date(count * MINUTE);
const at = (created: number, updated = created) => ({ created_at: minute(created), updated_at: minute(updated) });

/** Each window as `from-to`, in minutes. */
const shown = (windows: [fromMs: number, toMs: number][]) =>
  windows.map(([from, to]) => `${from / MINUTE}-${to / MINUTE}`).join(', ');

test.each([
  ['none', [], ''],
  ['one: a minute before to ten minutes after', [at(100, 101)], '99-111'],
  ['of one time: one window', [at(100), at(105), at(108)], '99-118'],
  ['in any order', [at(200), at(100)], '99-110, 199-210'],
  ['a long one takes in those within it', [at(100, 300), at(200), at(500)], '99-310, 499-510'],
])('%s', (_what, messages, windows) => {
  expect(shown(windowsOf(messages).map(({ fromMs, toMs }) => [fromMs, toMs]))).toBe(windows);
});

const wait = (from: number, to?: number) => ({ requested_at: minute(from), ended_at: to ? minute(to) : null });

test.each([
  ['which nobody asked about is at work all the time', [], '100-900'],
  ['that waited is at work before, between and after', [wait(110, 500), wait(520, 800)], '100-110, 500-520, 800-900'],
  ['whose last request nobody answered is at work until then', [wait(110)], '100-110, 900-900'],
])('a message %s', (_what, waits, parts) => {
  const found = partsAtWork(at(100, 900), waits);
  expect(shown(found.map(({ created_at, updated_at }) => [created_at.getTime(), updated_at.getTime()]))).toBe(parts);
});
