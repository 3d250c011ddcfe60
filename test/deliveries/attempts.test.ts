import { expect, test } from 'vitest';
import { attemptRequest, outcomeOf, verdictOf, waitBefore } from '../../deliveries/attempts.js';
import { attemptPush } from '../../deliveries/channels/push.js';
import { createOutbound, OutboundError } from '../../http/outbound.js';
import { httpServer } from '../runtime/loopback-server.js';
import { gate } from '../setup/until.js';

const result = (status_code: number | null, error: string | null = null) => ({ status_code, error, duration_ms: 1 });

test.each([
  [200, null, 1, 3, 'delivered'],
  [204, null, 3, 3, 'delivered'],
  // The head said so before the rest of the answer ran late.
  [200, 'TIMEOUT', 1, 3, 'delivered'],
  [400, null, 1, 3, 'failed'],
  [404, null, 1, 3, 'failed'],
  [429, null, 1, 3, 'failed'],
  [302, 'REDIRECT', 1, 3, 'failed'],
  [null, 'BAD_URL', 1, 3, 'failed'],
  [null, 'FORBIDDEN_ADDRESS', 1, 3, 'failed'],
  [500, null, 1, 3, 'retry'],
  [503, null, 2, 3, 'retry'],
  [503, null, 3, 3, 'failed'],
  [503, null, 3, 4, 'retry'],
  [503, null, 4, 4, 'failed'],
  [null, 'TIMEOUT', 1, 3, 'retry'],
  [null, 'CONNECT_FAILED', 2, 3, 'retry'],
  [null, 'BROKEN', 2, 3, 'retry'],
  [null, 'CONNECT_FAILED', 3, 3, 'failed'],
] as const)('status %s, error %s in attempt %d of %d: %s', (status, error, attempt, most, verdict) => {
  expect(verdictOf(outcomeOf(result(status, error)), attempt, most)).toBe(verdict);
});

test('attempts are 1 s, 5 s and 30 s apart, and each has 10 s', async () => {
  expect([1, 2, 3, 4].map(waitBefore)).toEqual([0, 1_000, 5_000, 30_000]);
  const given: unknown[] = [];
  const request = async (_url: string, options: object) => {
    given.push(options);
    throw new OutboundError('TIMEOUT', { requestSent: true });
  };
  const { signal } = new AbortController();
  const asked = { url: 'https://a.example/', headers: {}, body: '{}' };
  expect((await attemptRequest({ request }, asked, signal)).result).toMatchObject({
    status_code: null,
    error: 'TIMEOUT',
  });
  expect(given).toMatchObject([{ timeoutMs: 10_000 }]);
});

async function attempt(url: string, signal = new AbortController().signal) {
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  try {
    return await attemptPush(outbound, { url, schemes: [] }, { deliveryId: 'dlv_1', body: Buffer.from('{}') }, signal);
  } finally {
    await outbound.close();
  }
}

test('an answer without end counts by its status', async () => {
  const server = await httpServer((_request, response) => {
    response.write('x'.repeat(100_000));
  });
  expect(await attempt(server.url)).toMatchObject({ outcome: 'accepted', result: { status_code: 200, error: null } });
});

test('an attempt that this process cut off is none', async () => {
  const stop = new AbortController();
  const asked = gate();
  const server = await httpServer(() => asked.open());
  const cutOff = attempt(server.url, stop.signal);
  await asked.promise;
  stop.abort();
  await expect(cutOff).rejects.toThrow(OutboundError);
});
