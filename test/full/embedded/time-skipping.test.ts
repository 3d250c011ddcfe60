import { expect, test } from 'vitest';
import { ensureTimeSkippingServer, startTimeSkipping } from '../../time-skipping.js';

test('the time-skipping server starts and a day passes in no time', async () => {
  const [path, again] = await Promise.all([ensureTimeSkippingServer(), ensureTimeSkippingServer()]);
  expect(again).toBe(path);
  const environment = await startTimeSkipping();
  try {
    const before = await environment.currentTimeMs();
    await environment.sleep('1 day');
    expect((await environment.currentTimeMs()) - before).toBeGreaterThanOrEqual(86_400_000);
  } finally {
    await environment.teardown();
  }
});
