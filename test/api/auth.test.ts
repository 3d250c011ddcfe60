import { createHmac, generateKeyPairSync } from 'node:crypto';
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  type JSONWebKeySet,
  jwtVerify,
  SignJWT,
} from 'jose';
import { expect, test } from 'vitest';
import { loadSigningKeys, rotateSigningKeys } from '../../auth/signing-keys.js';
import { deleteTenant } from '../../auth/tenants.js';
import { CredentialSecretResponse, CredentialsGetResponse, GetTokenResponse } from '../../contracts/api/auth.js';
import { ErrorBody } from '../../contracts/primitives.js';
import { testAuthor } from '../setup/author.js';
import { until } from '../setup/until.js';
import { serveApi } from './served-api.js';

const api = await serveApi({ trustProxyCidrs: ['127.0.0.1/32'] });

const JSON_TYPE = { 'content-type': 'application/json' };
let lastAddress = 1;

/** Each caller comes from an address of its own, so that the limit on guesses of one test does not reach another. */
async function getToken(body: object, address = `192.0.2.${lastAddress++}`) {
  return api.client.raw('/auth/get_token', JSON.stringify(body), { ...JSON_TYPE, 'x-forwarded-for': address });
}

async function statusWith(token: string): Promise<number> {
  return (await api.client.raw('/sessions/get', '{}', { ...JSON_TYPE, authorization: `Bearer ${token}` })).status;
}

const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('a token carries the claims of the specification and is verified by the published keys', async () => {
  const credential = await api.credentialOf(api.tenantId, ['read', 'admin']);
  const answer = GetTokenResponse.strict().parse((await getToken({ ...credential, expires_in: 120 })).body);
  expect(answer).toMatchObject({ token_type: 'Bearer', expires_in: 120, scopes: ['read', 'admin'] });
  const jwks = (await api.client.get('/.well-known/jwks.json')).body as JSONWebKeySet;
  const { payload, protectedHeader } = await jwtVerify(answer.token, createLocalJWKSet(jwks));
  expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid: jwks.keys[0]?.kid });
  const { client_id } = credential;
  const of = { tenant_id: api.tenantId, sub: client_id, credential_id: client_id };
  expect(payload).toMatchObject({ ...of, agent_type: 'credential', scopes: ['read', 'admin'] });
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(120);
  expect(JSON.stringify(jwks)).not.toContain('"d"');
});

test.each([
  [{ expires_in: 59 }, 400],
  [{ expires_in: 604_801 }, 400],
  [{ expires_in: 60.5 }, 400],
  [{ expires_in: 604_800 }, 200],
  [{ agent_type: 'credential' }, 200],
  [{ client_secret: 'wrong' }, 401],
  [{ client_id: 'cred_unknown' }, 401],
  [{ client_id: '' }, 400],
  [{ client_id: 7 }, 400],
])('get_token with %o answers %i', async (change, status) => {
  const credential = await api.credentialOf(api.tenantId, ['read']);
  expect((await getToken({ ...credential, ...change })).status).toBe(status);
});

// Which types a credential may ask for is a table of test/contracts/permissions.test.ts.
test('a credential for agents gets tokens of its types, and 403 that names them', async () => {
  const credential = await api.credentialOf(api.tenantId, ['read'], ['painter', 'plumber']);
  const { token } = GetTokenResponse.parse((await getToken({ ...credential, agent_type: 'plumber' })).body);
  expect(decodeJwt(token).agent_type).toBe('plumber');
  for (const agent_type of [undefined, 'baker']) {
    const { status, body } = await getToken({ ...credential, agent_type });
    const error = expect.stringContaining('painter, plumber');
    expect([status, ErrorBody.parse(body)]).toMatchObject([403, { code: 'forbidden', error }]);
  }
});

test('a token lives no longer than its credential, and says so', async () => {
  const credential = await api.credentialOf(api.tenantId, ['read']);
  const set = 'UPDATE credentials SET expires_at = now() + $2::interval WHERE credential_id = $1';
  const expire = (interval: string) => api.database.query(set, [credential.client_id, interval]);
  await expire('2 minutes');
  const { token, expires_in } = GetTokenResponse.parse((await getToken({ ...credential, expires_in: 3_600 })).body);
  expect(expires_in).toBeLessThanOrEqual(120);
  expect(expires_in).toBeGreaterThan(60);
  const { iat = 0, exp = 0 } = decodeJwt(token);
  expect(exp - iat).toBe(expires_in);
  expect(GetTokenResponse.parse((await getToken({ ...credential, expires_in: 60 })).body).expires_in).toBe(60);
  await expire('900 milliseconds');
  expect((await getToken(credential)).status).toBe(401);
});

test('tokens that this platform did not sign for access are refused', async () => {
  const token = await api.client.token();
  const header = decodeProtectedHeader(token);
  const claims = decodeJwt(token);
  const [active] = await loadSigningKeys(api.db, api.secrets);
  const foreign = generateKeyPairSync('ed25519').privateKey;
  const own = { key: active?.privateJwk() ?? {}, kid: active?.kid ?? '' };
  const [head = '', payload = '', signature = ''] = token.split('.');
  const sign = (overrides: object, protect: object, key: Parameters<SignJWT['sign']>[0] = own.key) =>
    new SignJWT({ ...claims, ...overrides })
      .setProtectedHeader({ alg: 'EdDSA', kid: own.kid, typ: 'at+jwt', ...protect })
      .sign(key);
  const publicKey = JSON.stringify(active?.public_jwk);
  const hmacPart = `${b64({ ...header, alg: 'HS256' })}.${payload}`;
  const hmac = createHmac('sha256', publicKey).update(hmacPart).digest('base64url');
  const other = generateKeyPairSync('ed25519').publicKey;
  const forged: Record<string, string> = {
    'alg none': `${b64({ ...header, alg: 'none' })}.${payload}.`,
    'HS256 with the public key as its secret': `${hmacPart}.${hmac}`,
    'another kid': await sign({}, { kid: 'unknown' }),
    'no kid': await sign({}, { kid: undefined }),
    'its own key in the header': await sign({}, { kid: 'x', jwk: await exportJWK(other) }, foreign),
    'another type': await sign({}, { typ: 'JWT' }),
    'no expiry': await sign({ exp: undefined }, {}),
    'scopes that do not exist': await sign({ scopes: ['root'] }, {}),
    'changed claims': `${head}.${b64({ ...claims, scopes: ['full'], x: 1 })}.${signature}`,
    empty: 'x',
    dots: '..',
    long: 'a'.repeat(8_000),
  };
  for (const [what, wrong] of Object.entries(forged)) expect([what, await statusWith(wrong)]).toEqual([what, 401]);
  expect(await statusWith(await sign({}, {}))).toBe(200);
  expect(await statusWith(token)).toBe(200);
});

test.each(['Basic abc', 'Bearer', 'Bearer a b', 'bearer\tx'])('Authorization "%s": 401', async (authorization) => {
  expect((await api.client.raw('/sessions/get', '{}', { ...JSON_TYPE, authorization })).status).toBe(401);
});

test('of guesses at once only ten are answered, and the rest of a network does not get around that; right secrets pass', async () => {
  const credential = await api.credentialOf(api.tenantId, ['read']);
  const wrong = { ...credential, client_secret: 'guess' };
  const guesses = Array.from({ length: 40 }, (_, host) => getToken(wrong, `2001:db8:0:1::${host}`));
  const statuses = (await Promise.all(guesses)).map(({ status }) => status);
  expect(statuses.sort()).toEqual([...Array(10).fill(401), ...Array(30).fill(429)]);
  const slowed = await getToken(wrong, '2001:db8:0:1:ffff::1');
  expect(slowed).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  expect(Number(slowed.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await getToken(wrong, '2001:db8:0:2::1')).status).toBe(401);
  const right = await Promise.all(Array.from({ length: 30 }, () => getToken(credential, '2001:db8:0:1::1')));
  expect(right.map(({ status }) => status)).toEqual(Array(30).fill(200));
  const neighbour = { ...(await api.credentialOf(api.tenantId, ['read'])), client_secret: 'guess' };
  expect((await getToken(neighbour, '2001:db8:0:1::1')).status).toBe(401);
});

test('forwarded addresses count only from a trusted proxy', async () => {
  const plain = await serveApi();
  const guess = (address: number) =>
    plain.client.raw('/auth/get_token', JSON.stringify({ client_id: 'c', client_secret: 'x' }), {
      ...JSON_TYPE,
      'x-forwarded-for': `203.0.113.${address}`,
    });
  for (let address = 0; address < 10; address++) expect((await guess(address)).status).toBe(401);
  expect((await guess(99)).status).toBe(429);
});

test('a revoked credential stops: no new token at once, its tokens within 5 s', async () => {
  const reader = await api.clientOf(api.tenantId, ['read']);
  const token = await reader.token();
  const credential_id = decodeJwt(token).sub;
  expect(await statusWith(token)).toBe(200);
  expect((await api.client.post('/credentials/revoke', { credential_id })).body).toEqual({ ok: true, credential_id });
  const refused = async () => (await statusWith(token)) === 401;
  await until(refused, { timeoutMs: 5_000, what: 'the revoked token is refused' });
  expect((await api.client.post('/credentials/revoke', { credential_id })).status).toBe(200);
  expect(await api.client.failure('/credentials/rotate', { credential_id })).toBe('409 CONFLICT');
});

test('a deleted tenant stops within 5 s', async () => {
  const tenantId = await api.otherTenant();
  const client = await api.clientOf(tenantId, ['full']);
  const token = await client.token();
  await deleteTenant(api.db, testAuthor(tenantId));
  const refused = async () => (await statusWith(token)) === 401;
  expect(await until(refused, { timeoutMs: 5_000, what: 'the tenant is refused' })).toBe(true);
});

test('rotation: both secrets work during the overlap, one without it', async () => {
  const first = await api.credentialOf(api.tenantId, ['read']);
  const rotate = async (overlap_seconds: number) => {
    const body = { credential_id: first.client_id, overlap_seconds };
    return (await api.client.ok('/credentials/rotate', body, CredentialSecretResponse)).client_secret;
  };
  const statusOf = async (client_secret: string) =>
    (await getToken({ client_id: first.client_id, client_secret })).status;
  const second = await rotate(60);
  expect([await statusOf(first.client_secret), await statusOf(second)]).toEqual([200, 200]);
  await api.database.query('UPDATE credentials SET previous_expires_at = now() WHERE credential_id = $1', [
    first.client_id,
  ]);
  expect([await statusOf(first.client_secret), await statusOf(second)]).toEqual([401, 200]);
  const third = await rotate(0);
  expect([await statusOf(first.client_secret), await statusOf(second), await statusOf(third)]).toEqual([401, 401, 200]);
});

test('a credential made over the API works until it expires, and its secret is shown once', async () => {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const body = { name: 'painters', scopes: ['read'], agent_types: ['painter'], expires_at };
  const made = await api.client.ok('/credentials/create', body, CredentialSecretResponse);
  expect(made.credential).toMatchObject({ ...body, revoked_at: null });
  const { client_id } = made.credential;
  const list = await api.client.ok('/credentials/get', { page_size: 1 }, CredentialsGetResponse);
  expect(list.credentials.map((credential) => credential.client_id)).toEqual([client_id]);
  expect(JSON.stringify(list)).not.toMatch(/secret/);
  expect((await getToken({ client_id, client_secret: made.client_secret, agent_type: 'painter' })).status).toBe(200);
  await api.database.query('UPDATE credentials SET expires_at = now() WHERE credential_id = $1', [client_id]);
  expect((await getToken({ client_id, client_secret: made.client_secret })).status).toBe(401);
  const far = { ...body, expires_at: `9999-12-31T23:59:59.${'9'.repeat(200)}+23:59` };
  const { credential } = await api.client.ok('/credentials/create', far, CredentialSecretResponse);
  expect(credential.expires_at).toBe('9999-12-31T00:00:59.999Z');
  for (const moment of ['9999-12-31T23:59:59-23:59', '2020-01-01T00:00:00Z'])
    expect(await api.client.failure('/credentials/create', { ...body, expires_at: moment })).toBe('400 BAD_REQUEST');
});

test('keys rotate without ending the tokens that the old one signed', async () => {
  const credential = await api.credentialOf(api.tenantId, ['read']);
  const before = await api.tokens.jwks();
  const { kid, receipt_kid, retired } = await rotateSigningKeys(api.db, api.secrets);
  const [ofTokens, ofReceipts] = before.keys.map((key) => key.kid);
  expect(retired.toSorted()).toEqual([ofTokens, ofReceipts].toSorted());
  const keys = (await loadSigningKeys(api.db, api.secrets)).map((key) => key.kid);
  expect(keys).toEqual([kid, ofTokens, receipt_kid, ofReceipts]);
  const { token } = GetTokenResponse.parse((await getToken(credential)).body);
  expect(await statusWith(token)).toBe(200);
});

test('a tenant beyond its rate is told to wait, and no other', async () => {
  const limited = await serveApi({ ratePerMinute: 3 });
  const statuses = [];
  for (let call = 0; call < 4; call++) statuses.push((await limited.client.post('/sessions/get', {})).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  const other = await limited.clientOf(await limited.otherTenant(), ['read']);
  expect((await other.post('/sessions/get', {})).status).toBe(200);
});
