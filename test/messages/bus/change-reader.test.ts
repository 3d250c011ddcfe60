import { expect, test } from 'vitest';
import type { Db, Tx } from '../../../db/pool.js';
import { ChangeReader } from '../../../messages/stream/change-reader.js';
import { EventQueue } from '../../../messages/stream/event-queue.js';
import { MemoryBus } from '../../../messages/stream/memory-bus.js';
import { createLogger } from '../../../runtime/logger.js';
import { cleanUp } from '../../setup/clean-up.js';

const AT = new Date(0);
const known = (n: number) => ({
  tenant_id: 'ten_1',
  message_id: `msg_${n}`,
  state: 'working' as const,
  updated_at: AT,
});

/** A database that gives each message a state, and counts what it is asked. */
function database(stateOf: (messageId: string) => string | null) {
  const asked: number[] = [];
  const query = async (_text: string, values: unknown[] = []) => {
    const ids = values[1] as string[];
    asked.push(ids.length);
    return ids.flatMap((id, place) => {
      const state = stateOf(id);
      return state === null ? [] : [{ nth: place + 1, state, updated_at: AT }];
    });
  };
  const system = ((work) => work({ query } as unknown as Tx)) as Db['system'];
  return { system, asked };
}

test('all that wait share a statement, and each learns about its own message', async () => {
  const states: Record<string, string | null> = { msg_7: 'completed', msg_8: null };
  const { system, asked } = database((id) => (id in states ? (states[id] ?? null) : 'working'));
  const reader = new ChangeReader({ system }, { rereadMs: 5 });
  const changed = await Promise.all(Array.from({ length: 100 }, (_, n) => reader.hasChanged(known(n))));
  expect(asked).toEqual([100]);
  expect(changed.flatMap((has, n) => (has ? [n] : []))).toEqual([7, 8]);
});

test('a look that fails is told to those who shared it, and the next one works', async () => {
  let isAway = true;
  const { system } = database(() => 'working');
  const broken = ((work) => (isAway ? Promise.reject(new Error('away')) : system(work))) as Db['system'];
  const reader = new ChangeReader({ system: broken }, { rereadMs: 5 });
  await expect(Promise.all([reader.hasChanged(known(1)), reader.hasChanged(known(2))])).rejects.toThrow('away');
  isAway = false;
  expect(await reader.hasChanged(known(1))).toBe(false);
});

test('what comes while a look lasts is not held up by it', async () => {
  const bus = new MemoryBus({ log: createLogger({ level: 'silent' }) });
  cleanUp(() => bus.close());
  const ref = { tenant_id: 'ten_1', message_id: 'msg_1' };
  using queue = new EventQueue({ bus }, ref, 0);
  const { signal } = new AbortController();
  expect(await queue.unlessEvents(Promise.resolve(true), signal)).toBe(true);
  const never = new Promise<boolean>(() => undefined);
  const held = queue.unlessEvents(never, signal);
  bus.publish(ref.tenant_id, ref.message_id, { kind: 'status_text', text: 'on it' });
  expect(await held).toBeUndefined();
  expect(queue.drain().events).toHaveLength(1);
  expect(await queue.unlessEvents(never, AbortSignal.abort())).toBeUndefined();
});
