import { expect, test } from 'vitest';
import { CallSlots } from '../../../tools/call-slots.js';

const KIB = 1_024;
const calls = (tenant_id: string, count: number, bytes: number, slots: CallSlots) =>
  Array.from({ length: count }, (_, n) => slots.enter({ tenant_id, key: `${tenant_id}/agent-${n}` }, bytes));

test.each([
  ['calls', 3_000, 1, 1_024],
  ['bytes of arguments', 300, 256 * KIB, 64],
])('one tenant takes a quarter of a node: %s', (_what, count, bytes, quarter) => {
  const slots = new CallSlots({ perCaller: 256, perNode: 4_096 });
  const own = calls('a', count, bytes, slots).filter((leave) => leave !== null);
  expect(own).toHaveLength(quarter);
  expect(calls('b', 1, bytes, slots)).not.toContain(null);
  expect(calls('a', 1, bytes, slots)).toEqual([null]);
  own[0]?.();
  own[0]?.();
  expect(calls('a', 2, bytes, slots).map((leave) => leave !== null)).toEqual([true, false]);
});

test('all tenants together take what a node has, and a caller its own part', () => {
  const slots = new CallSlots({ perCaller: 2, perNode: 8 });
  const admitted = ['a', 'b', 'c', 'd', 'e'].flatMap((tenant) => calls(tenant, 3, 1, slots));
  expect(admitted.filter((leave) => leave !== null)).toHaveLength(8);
  for (const leave of admitted) leave?.();
  const caller = { tenant_id: 'a', key: 'a/agent' };
  const one = new CallSlots({ perCaller: 2, perNode: 800 });
  expect([1, 2, 3].map(() => one.enter(caller, 1) !== null)).toEqual([true, true, false]);
});
