import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BusItem } from '../../../messages/stream/bus.js';
import { MemoryBus, type MemoryBusOptions } from '../../../messages/stream/memory-bus.js';
import { createLogger } from '../../../runtime/logger.js';
import { until } from '../../setup/until.js';
import { describeBus } from './bus-behaviour.js';

const TENANT = 'ten_1';

function memoryBus(options: Omit<MemoryBusOptions, 'log'>) {
  const bus = new MemoryBus({ log: createLogger({ level: 'silent' }), ...options });
  onTestFinished(() => bus.close());
  const kept = (message: string, after = 0): BusItem[] => {
    const seen: BusItem[] = [];
    bus.subscribe(TENANT, message, after, (placed) => seen.push(placed))();
    return seen;
  };
  return { bus, kept };
}

describeBus('memory', async () => new MemoryBus({ log: createLogger({ level: 'silent' }) }));

describe('memory bus bounds', () => {
  it('forgets a silent message after its time, and later cursors are still higher', async () => {
    const { bus, kept } = memoryBus({ retentionMs: 20, sweepMs: 5 });
    bus.publish(TENANT, 'msg_1', { kind: 'status_text', text: 'old' });
    const [old] = kept('msg_1');
    await until(() => kept('msg_1').length === 0);
    bus.publish(TENANT, 'msg_1', { kind: 'status_text', text: 'new' });
    expect(kept('msg_1', old?.cursor).map(({ event }) => event)).toEqual([
      { kind: 'gap' },
      { kind: 'status_text', text: 'new' },
      { kind: 'caught_up' },
    ]);
  });

  it('keeps what nobody follows for seconds, once the row has it, and what somebody may resume for ten minutes', () => {
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { bus, kept } = memoryBus({});
    const end = { kind: 'changed', recorded: true } as const;
    const output = { kind: 'status_text', text: 'output' } as const;
    const count = (message: string) => kept(message, 1).length - 2; // without `gap` and `caught_up`
    bus.subscribe(TENANT, 'followed', 0, () => undefined)();
    for (const message of ['quiet', 'soon', 'followed']) bus.publish(TENANT, message, { kind: 'changed' });
    for (const message of ['ended', 'followed', 'unrecorded']) bus.publish(TENANT, message, output);
    for (const message of ['ended', 'followed']) bus.publish(TENANT, message, end);
    vi.advanceTimersByTime(9_000);
    expect(count('soon')).toBe(1);
    vi.advanceTimersByTime(11_000);
    expect(['quiet', 'ended', 'followed', 'unrecorded', 'soon'].map(count)).toEqual([0, 0, 1, 1, 1]);
    vi.advanceTimersByTime(570_000);
    expect(['followed', 'unrecorded', 'soon'].map(count)).toEqual([1, 1, 1]);
    vi.advanceTimersByTime(20_000);
    expect(['followed', 'unrecorded', 'soon'].map(count)).toEqual([0, 0, 0]);
  });

  it('keeps a follower whose message was forgotten', async () => {
    const { bus, kept } = memoryBus({ retentionMs: 20, sweepMs: 5 });
    const seen: BusItem[] = [];
    bus.subscribe(TENANT, 'msg_1', 0, (placed) => seen.push(placed));
    bus.publish(TENANT, 'msg_1', { kind: 'changed' });
    await until(() => kept('msg_1').length === 0);
    bus.publish(TENANT, 'msg_1', { kind: 'changed' });
    expect(seen.length).toBe(2);
    expect(seen[1]?.cursor).toBe((seen[0]?.cursor ?? 0) + 1);
  });

  it('drops the message that was silent longest when all together are too large', () => {
    const { bus, kept } = memoryBus({ totalBytesMax: 100_000 });
    const large = { kind: 'status_text', text: 'x'.repeat(40_000) } as const;
    for (const message of ['msg_1', 'msg_2']) bus.publish(TENANT, message, large);
    bus.publish(TENANT, 'msg_1', { kind: 'changed' });
    bus.publish(TENANT, 'msg_3', large);
    expect(['msg_1', 'msg_2', 'msg_3'].map((message) => kept(message).length)).toEqual([2, 0, 1]);
  });
});
