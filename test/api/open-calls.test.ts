import { expect, test } from 'vitest';
import { type OpenCallLimits, OpenCalls } from '../../api/open-calls.js';
import type { PlatformError } from '../../runtime/errors.js';

/** Why a call is refused, and when to try again; null where it is open now. */
function refusal(calls: OpenCalls, token: string, tenant_id: string, user_id?: string): string | null {
  try {
    calls.enter(token, { tenant_id, user_id });
    return null;
  } catch (error) {
    const { code, message, headers } = error as PlatformError;
    return `${code} ${headers?.['Retry-After']} ${message.split(' too many')[0]}`;
  }
}

type Of = [token: string, tenant: string];
test.each<[string, OpenCallLimits, Of, Of | null, string]>([
  ['one token', { perToken: 2, perTenant: 9, inAll: 9 }, ['a', 'ten_1'], ['b', 'ten_1'], 'This token has'],
  ['one tenant', { perToken: 9, perTenant: 2, inAll: 9 }, ['c', 'ten_1'], ['c', 'ten_2'], 'The tenant has'],
  ['all together', { perToken: 9, perTenant: 9, inAll: 2 }, ['c', 'ten_2'], null, 'This process has'],
])('%s at its limit is told to wait, until a call ends', (_what, limits, refused, other, who) => {
  const calls = new OpenCalls(limits);
  const leave = calls.enter('a', { tenant_id: 'ten_1' });
  expect(refusal(calls, 'a', 'ten_1')).toBeNull();
  expect(refusal(calls, ...refused)).toBe(`RATE_LIMITED 5 ${who}`);
  if (other) expect(refusal(calls, ...other)).toBeNull();
  leave();
  expect(refusal(calls, ...refused)).toBeNull();
});

test('all tokens of an end user count together', () => {
  const calls = new OpenCalls({ perToken: 2, perTenant: 9, inAll: 9 });
  expect([refusal(calls, 'a', 'ten_1', 'u-1'), refusal(calls, 'b', 'ten_1', 'u-1')]).toEqual([null, null]);
  expect(refusal(calls, 'c', 'ten_1', 'u-1')).toBe('RATE_LIMITED 5 This user has');
  expect([refusal(calls, 'd', 'ten_1', 'u-2'), refusal(calls, 'e', 'ten_2', 'u-1')]).toEqual([null, null]);
});
