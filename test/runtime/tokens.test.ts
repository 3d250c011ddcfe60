import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { StoredKey } from '../../auth/key-ring.js';
import { createTokens } from '../../auth/tokens.js';
import { CLAIMS, newKey } from './signing-key.js';

/** How long the keys are kept before they are read again. */
const KEYS_KEPT_MS = 60_000;
const UNAUTHORIZED = { code: 'unauthorized' };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function issuing(...kids: string[]) {
  const stored = { keys: await Promise.all(kids.map(newKey)) };
  const log = { warn: vi.fn() };
  // New objects with each reading, as from a database.
  const copyOf = (key: StoredKey) => ({ ...key, public_jwk: structuredClone(key.public_jwk) });
  const tokens = createTokens({ loadKeys: async () => stored.keys.map(copyOf), log });
  return { stored, tokens, log, token: await tokens.issueAccessToken(CLAIMS, 600) };
}

test('a token is verified once, and again when the keys were read anew only if its key is another', async () => {
  const { stored, tokens, token } = await issuing('one');
  const claims = await tokens.verifyAccessToken(token);
  expect(await tokens.verifyAccessToken(token)).toBe(claims);
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  expect(await tokens.verifyAccessToken(token)).toBe(claims);
  stored.keys = [await newKey('one')];
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject(UNAUTHORIZED);
});

test('a token that was good ends with its time', async () => {
  const { tokens, token } = await issuing('one');
  await tokens.verifyAccessToken(token);
  vi.advanceTimersByTime(599_000);
  await tokens.verifyAccessToken(token);
  vi.advanceTimersByTime(1_000);
  await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject(UNAUTHORIZED);
});

test('a token that was good ends when its key is taken away, not when it is retired', async () => {
  const { stored, tokens, token } = await issuing('one', 'two');
  await tokens.verifyAccessToken(token);
  const [one, two] = stored.keys as [StoredKey, StoredKey];
  stored.keys = [{ ...one, retired: true }, two];
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  await tokens.verifyAccessToken(token);
  stored.keys = [two];
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject(UNAUTHORIZED);
});

/** @returns the error of every further reading */
function cutOff(stored: { keys: StoredKey[] }): Error {
  const away = new Error('away');
  Object.defineProperty(stored, 'keys', {
    get: () => {
      throw away;
    },
  });
  return away;
}

test('keys that cannot be read again stay in use for four minutes, then tokens are refused with what the reading said', async () => {
  const { tokens, token, stored, log } = await issuing('one');
  await tokens.verifyAccessToken(token);
  const away = cutOff(stored);
  vi.advanceTimersByTime(239_000);
  await tokens.verifyAccessToken(token);
  await tokens.verifyAccessToken(await tokens.issueAccessToken(CLAIMS, 600));
  expect(log.warn).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1_000);
  await expect(tokens.verifyAccessToken(token)).rejects.toBe(away);
});

test('a token of an unknown key is refused at once while the keys cannot be read again', async () => {
  const { tokens, stored } = await issuing('one');
  const { token } = await issuing('two');
  cutOff(stored);
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject(UNAUTHORIZED);
});

const unreadable = (key: StoredKey): StoredKey => ({
  ...key,
  privateJwk: () => {
    throw new Error('sealed with another key');
  },
});

test('private halves that cannot be decrypted stop neither the tokens of other keys nor their own', async () => {
  const { tokens, token, stored } = await issuing('one');
  stored.keys = [unreadable(await newKey('two')), { ...unreadable(stored.keys[0] as StoredKey), retired: true }];
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  expect(await tokens.verifyAccessToken(token)).toMatchObject(CLAIMS);
  expect((await tokens.jwks()).keys).toHaveLength(2);
  await expect(tokens.issueAccessToken(CLAIMS, 600)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});

test('a key that was read once goes on signing where it is sealed anew with a key that this process does not have', async () => {
  const { tokens, stored } = await issuing('one');
  stored.keys = stored.keys.map(unreadable);
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  expect(await tokens.verifyAccessToken(await tokens.issueAccessToken(CLAIMS, 600))).toMatchObject(CLAIMS);
});

test('a public half that is none ends the tokens of its key alone', async () => {
  const { tokens, token, stored, log } = await issuing('one');
  stored.keys = [...stored.keys, { ...(await newKey('two')), public_jwk: { kty: 'OKP', crv: 'none' }, retired: true }];
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  expect(await tokens.verifyAccessToken(token)).toMatchObject(CLAIMS);
  expect((await tokens.jwks()).keys.map(({ kid }) => kid)).toEqual(['one']);
  expect(log.warn).toHaveBeenCalledTimes(1);
});

test.each([
  ['another signature', (token: string) => `${token.slice(0, -10)}AAAAAAAAAA`],
  ['other claims', (token: string) => token.replace(/\.(.)/, (_all, char) => `.${char === 'a' ? 'b' : 'a'}`)],
  ['no signature', (token: string) => token.slice(0, token.lastIndexOf('.') + 1)],
])('a good token with %s is refused, however often the good one was seen', async (_what, change) => {
  const { tokens, token } = await issuing('one');
  for (let round = 0; round < 2; round++) {
    await tokens.verifyAccessToken(token);
    await expect(tokens.verifyAccessToken(change(token))).rejects.toMatchObject(UNAUTHORIZED);
  }
});

test('callers cannot change what other callers of the same token are', async () => {
  const { tokens, token } = await issuing('one');
  const claims = await tokens.verifyAccessToken(token);
  expect(() => claims.scopes.push('full')).toThrow(TypeError);
  expect(() => Object.assign(claims, { tenant_id: 'ten_2' })).toThrow(TypeError);
});

test('a dispatch token is a JWT that anybody with the public key can verify', async () => {
  const { stored, tokens } = await issuing('one');
  const dispatch = { tenant_id: 'ten_1', instance_id: 'agent-1', dispatch_id: 'dsp_1' };
  const token = await tokens.issueDispatchToken(dispatch);
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'EdDSA', kid: 'one', typ: 'JWT' });
  const key = await importJWK(stored.keys[0]?.public_jwk ?? {}, 'EdDSA');
  const { payload } = await jwtVerify(token, key, { audience: 'agent-1', subject: 'dsp_1' });
  expect(payload).toMatchObject({ tenant_id: 'ten_1', dispatch_id: 'dsp_1', exp: (payload.iat ?? 0) + 60 });
  await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject(UNAUTHORIZED);
});
