import { decodeProtectedHeader, exportJWK, generateKeyPair, importJWK, jwtVerify } from 'jose';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { StoredKey } from '../../auth/key-ring.js';
import { createTokens } from '../../auth/tokens.js';

const CLAIMS = {
  tenant_id: 'ten_1',
  agent_type: 'credential',
  scopes: ['read' as const],
  sub: 'c',
  credential_id: 'c',
};
/** How long the keys are kept before they are read again. */
const KEYS_KEPT_MS = 60_000;
const UNAUTHORIZED = { code: 'unauthorized' };

async function newKey(kid: string): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  return { kid, public_jwk: await exportJWK(publicKey), private_jwk: await exportJWK(privateKey), retired: false };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function issuing(...kids: string[]) {
  const stored = { keys: await Promise.all(kids.map(newKey)) };
  const tokens = createTokens({ loadKeys: async () => stored.keys.map((key) => structuredClone(key)) });
  return { stored, tokens, token: await tokens.issueAccessToken(CLAIMS, 600) };
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

test('while the keys cannot be read, tokens that were good are refused with what the reading said', async () => {
  const { tokens, token, stored } = await issuing('one');
  await tokens.verifyAccessToken(token);
  const away = new Error('away');
  Object.defineProperty(stored, 'keys', {
    get: () => {
      throw away;
    },
  });
  vi.advanceTimersByTime(KEYS_KEPT_MS);
  await expect(tokens.verifyAccessToken(token)).rejects.toBe(away);
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
