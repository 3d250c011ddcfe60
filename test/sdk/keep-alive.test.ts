import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { KeepAlive } from '../../sdk/connected/keep-alive.js';

const SECOND = 1_000;

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

function keepAlive() {
  const seen: string[] = [];
  const alive = new KeepAlive(30 * SECOND, { ping: () => seen.push('ping'), dead: () => seen.push('dead') });
  onTestFinished(() => alive.stop());
  return { alive, seen };
}

test('a peer that answers none of three pings is dead after about 90 seconds', () => {
  const { seen } = keepAlive();
  vi.advanceTimersByTime(90 * SECOND);
  expect(seen).toEqual(['ping', 'ping', 'ping']);
  vi.advanceTimersByTime(10 * SECOND);
  expect(seen).toEqual(['ping', 'ping', 'ping', 'dead']);
});

test('a sign of life after the third ping is in time', () => {
  const { alive, seen } = keepAlive();
  vi.advanceTimersByTime(95 * SECOND);
  alive.frameReceived();
  vi.advanceTimersByTime(90 * SECOND);
  expect(seen).not.toContain('dead');
  vi.advanceTimersByTime(10 * SECOND);
  expect(seen.at(-1)).toBe('dead');
});

test('after the end nothing comes any more', () => {
  const { alive, seen } = keepAlive();
  vi.advanceTimersByTime(95 * SECOND);
  alive.stop();
  vi.advanceTimersByTime(300 * SECOND);
  expect(seen).toEqual(['ping', 'ping', 'ping']);
});
