import { expect, test } from 'vitest';
import { outcomeOf, verdictOf, waitBefore } from '../../deliveries/attempts.js';
import { attemptPush } from '../../deliveries/channels/push.js';
import { createOutbound, OutboundError } from '../../http/outbound.js';
import { httpServer } from '../runtime/loopback-server.js';
import { gate } from '../setup/until.js';

const result = (status_code: number | null, error: string | null = null) => ({ status_code, error, duration_ms: 1 });

test.each([
  [200, null, 1, 'delivered'],
  [204, null, 3, 'delivered'],
  // The head said so before the rest of the answer ran late.
  [200, 'TIMEOUT', 1, 'delivered'],
  [400, null, 1, 'failed'],
  [404, null, 1, 'failed'],
  [429, null, 1, 'failed'],
  [302, 'REDIRECT', 1, 'failed'],
  [null, 'BAD_URL', 1, 'failed'],
  [null, 'FORBIDDEN_ADDRESS', 1, 'failed'],
  [500, null, 1, 'retry'],
  [503, null, 2, 'retry'],
  [503, null, 3, 'failed'],
  [null, 'TIMEOUT', 1, 'retry'],
  [null, 'CONNECT_FAILED', 2, 'retry'],
  [null, 'BROKEN', 2, 'retry'],
  [null, 'CONNECT_FAILED', 3, 'failed'],
] as const)('status %s, error %s in attempt %d: %s', (status, error, attempt, verdict) => {
  expect(verdictOf(outcomeOf(result(status, error)), attempt)).toBe(verdict);
});

test('attempts are 1 s and 5 s apart', () => {
  expect([1, 2, 3].map(waitBefore)).toEqual([0, 1_000, 5_000]);
});

async function attempt(url: string, allowCidrs: string[], signal = new AbortController().signal) {
  const outbound = createOutbound({ allowCidrs });
  try {
    return await attemptPush(outbound, { url, schemes: [] }, { deliveryId: 'dlv_1', body: Buffer.from('{}') }, signal);
  } finally {
    await outbound.close();
  }
}

test('a receiver at a private address is not asked', async () => {
  const server = await httpServer((_request, response) => response.end());
  expect(await attempt(server.url, [])).toMatchObject({ status_code: null, error: 'FORBIDDEN_ADDRESS' });
  expect(server.connections()).toBe(0);
});

test('an answer without end counts by its status', async () => {
  const server = await httpServer((_request, response) => {
    response.write('x'.repeat(100_000));
  });
  expect(await attempt(server.url, ['127.0.0.0/8'])).toMatchObject({ status_code: 200, error: null });
});

test('an attempt that this process cut off is none', async () => {
  const stop = new AbortController();
  const asked = gate();
  const server = await httpServer(() => asked.open());
  const cutOff = attempt(server.url, ['127.0.0.0/8'], stop.signal);
  await asked.promise;
  stop.abort();
  await expect(cutOff).rejects.toThrow(OutboundError);
});
