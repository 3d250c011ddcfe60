import { expect, test, vi } from 'vitest';
import { AsyncContext } from '../../runtime/async-context.js';

test('the storage is disabled when the last of several calls has ended, however it ended', async () => {
  const storage = { disable: vi.fn() };
  const context = AsyncContext.of(storage, '20.19.0');
  let end: () => void = () => undefined;
  const first = context.run(() => new Promise<void>((resolve) => (end = resolve)));
  await expect(context.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  AsyncContext.of(storage).release();
  expect(storage.disable).not.toHaveBeenCalled();
  end();
  await first;
  expect(storage.disable).toHaveBeenCalledTimes(1);
});

test.each([
  ['20.19.0', true],
  ['22.12.0', true],
  ['23.11.1', true],
  ['24.0.0', false],
  ['26.10.0', false],
])('on Node %s an unused storage is disabled: %s', (version, disabled) => {
  const storage = { disable: vi.fn() };
  AsyncContext.of(storage, version).release();
  expect(storage.disable).toHaveBeenCalledTimes(disabled ? 1 : 0);
});
