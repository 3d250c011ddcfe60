import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type CredentialStatus, createAuthenticator, type TokenOf } from '../../auth/authenticator.js';
import { createTokens } from '../../auth/tokens.js';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';
import { CLAIMS, newKey } from './signing-key.js';

const log = createLogger({ level: 'silent' });
const TENANT = CLAIMS.tenant_id;
const AWAY = new PlatformError('SERVICE_UNAVAILABLE', 'away');

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function authenticating(status: () => CredentialStatus | null) {
  const key = await newKey('one');
  const tokens = createTokens({ loadKeys: async () => [key], log });
  let lookups = 0;
  const authenticator = createAuthenticator({
    tokens,
    clocks: DEFAULT_CLOCKS,
    lookup: async () => {
      lookups++;
      return status();
    },
  });
  const token = await tokens.issueAccessToken(CLAIMS, 600);
  return { call: () => authenticator.authenticate(token), lookups: () => lookups };
}

test('many calls at once ask for the status once', async () => {
  const { call, lookups } = await authenticating(() => ({ tenant_id: TENANT, usable: true, expires_at: null }));
  await Promise.all(Array.from({ length: 20 }, call));
  expect(lookups()).toBe(1);
});

test('a revocation is seen within 5 s', async () => {
  let usable = true;
  const { call } = await authenticating(() => ({ tenant_id: TENANT, usable, expires_at: null }));
  await call();
  usable = false;
  vi.advanceTimersByTime(5_000);
  await expect(call()).rejects.toMatchObject({ code: 'unauthorized' });
});

test('while the database is away what was read less than 5 s ago counts, and nothing else does', async () => {
  let away = false;
  const { call } = await authenticating(() => {
    if (away) throw AWAY;
    return { tenant_id: TENANT, usable: true, expires_at: null };
  });
  await call();
  away = true;
  vi.advanceTimersByTime(4_900);
  await call();
  vi.advanceTimersByTime(200);
  await expect(call()).rejects.toBe(AWAY);
});

test.each<[string, CredentialStatus | null]>([
  ['is unknown', null],
  ['has expired', { tenant_id: TENANT, usable: true, expires_at: new Date(0) }],
  ["is another tenant's", { tenant_id: 'ten_2', usable: true, expires_at: null }],
])('a token whose credential %s is refused', async (_what, status) => {
  const { call } = await authenticating(() => status);
  await expect(call()).rejects.toMatchObject({ code: 'unauthorized' });
});

test('an unknown key id reloads the keys, at most once a second', async () => {
  const [first, second] = [await newKey('one'), await newKey('two')];
  let stored = [first];
  let loads = 0;
  const tokens = createTokens({
    loadKeys: async () => {
      loads++;
      return stored;
    },
    log,
  });
  const elsewhere = createTokens({ loadKeys: async () => [second], log });
  await tokens.jwks();
  const token = await elsewhere.issueAccessToken(CLAIMS, 600);
  for (let guess = 0; guess < 5; guess++)
    await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(loads).toBe(1);
  stored = [second, { ...first, retired: true }];
  vi.advanceTimersByTime(1_000);
  expect(await tokens.verifyAccessToken(token)).toMatchObject(CLAIMS);
  expect(loads).toBe(2);
  const own = await tokens.issueAccessToken(CLAIMS, 600);
  expect(await elsewhere.verifyAccessToken(own)).toMatchObject(CLAIMS);
});

test('a status is kept for each user and each session of the console', async () => {
  const key = await newKey('one');
  const tokens = createTokens({ loadKeys: async () => [key], log });
  const asked: TokenOf[] = [];
  const lookup = async (_credentialId: string, token: TokenOf) => {
    asked.push(token);
    return { tenant_id: TENANT, usable: token.consoleSession !== 'x', expires_at: null };
  };
  const { authenticate } = createAuthenticator({ tokens, clocks: DEFAULT_CLOCKS, lookup });
  const call = async (more: object) => authenticate(await tokens.issueAccessToken({ ...CLAIMS, ...more }, 600));
  for (const more of [{ user_id: 'x' }, {}, { user_id: 'x' }, {}]) await call(more);
  await expect(call({ console_session: 'x' })).rejects.toMatchObject({ code: 'unauthorized' });
  expect(asked).toEqual([
    { tenantId: TENANT, userId: 'x' },
    { tenantId: TENANT },
    { tenantId: TENANT, consoleSession: 'x' },
  ]);
});
