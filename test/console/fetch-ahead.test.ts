import { afterEach, expect, test, vi } from 'vitest';
import { ApiError, call, fetchAhead, fetchJson } from '../../console/api/call.js';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A server that numbers its answers. @returns what it was asked for */
function numbering(status = 200): string[] {
  const asked: string[] = [];
  const fetch = async (path: string, { body = '' }: { body?: string } = {}) => {
    const count = asked.push(`${path} ${body}`.trim());
    return new Response(JSON.stringify({ count }), { status });
  };
  vi.stubGlobal('fetch', fetch);
  return asked;
}

test('what was asked for ahead is the answer to the first who asks for the same', async () => {
  vi.useFakeTimers();
  const asked = numbering();
  await fetchAhead('/console/session');
  await fetchAhead('/requests/get', { page_size: 50 });
  expect(await call('/requests/get', { page_size: 50 })).toEqual({ count: 2 });
  expect(await call('/requests/get', { page_size: 10 })).toEqual({ count: 3 });
  expect(await fetchJson('/console/session')).toEqual({ count: 1 });
  expect(await fetchJson('/console/session')).toEqual({ count: 4 });
  expect(asked).toHaveLength(4);
});

test('an answer that nobody took within five seconds is asked for again', async () => {
  vi.useFakeTimers();
  numbering();
  await fetchAhead('/console/session');
  vi.advanceTimersByTime(5_000);
  expect(await fetchJson('/console/session')).toEqual({ count: 2 });
});

test('a failure is told to who takes the answer', async () => {
  vi.useFakeTimers();
  numbering(503);
  void fetchAhead('/console/session').catch(() => undefined);
  await expect(fetchJson('/console/session')).rejects.toBeInstanceOf(ApiError);
});
