import { expect, test } from 'vitest';
import { createSignInLink } from '../../../auth/console-sessions.js';
import { createOperator } from '../../../auth/operators.js';
import { CredentialsGetResponse } from '../../../contracts/api/auth.js';
import { CONSOLE_OPERATIONS } from '../../../contracts/api/console.js';
import type { Scope } from '../../../contracts/primitives.js';
import { until } from '../../setup/until.js';
import { type ServedApi, serveApi } from '../served-api.js';

const api = await serveApi({ sequencer: true, clocks: { credentialCheckMs: 50 } });
const JSON_TYPE = { 'content-type': 'application/json' };

/** A browser that is signed in: its cookie, and what its page knows. */
async function signIn(body: object, on: ServedApi = api, headers: Record<string, string> = {}) {
  const answer = await on.client.raw('/console/sign_in', JSON.stringify(body), { ...JSON_TYPE, ...headers });
  const setCookies = answer.headers.getSetCookie();
  const [cookie = '', csrfCookie = ''] = setCookies.map((set) => set.split(';')[0] ?? '');
  const session = CONSOLE_OPERATIONS.signIn.response.safeParse(answer.body).data?.session;
  const csrf = csrfCookie.split('=')[1] ?? '';
  return {
    answer,
    setCookies,
    cookie,
    csrf,
    session,
    /** `200`, or `403 forbidden`. */
    post: async (path: string, more: object = {}, changed: Record<string, string> = {}) => {
      const sent = { ...JSON_TYPE, cookie, 'x-csrf-token': csrf, ...changed };
      const { status, body: given } = await on.client.raw(path, JSON.stringify(more), sent);
      return status === 200 ? '200' : `${status} ${(given as { code: string }).code}`;
    },
    see: () => on.client.raw('/console/session', null, { cookie }, 'GET'),
  };
}

const asCredential = async (...scopes: Scope[]) => {
  const credential = await api.credentialOf(api.tenantId, scopes);
  return { ...credential, browser: await signIn(credential) };
};

test('a credential signs in: its cookie is sealed and for scripts of no page, and its calls are those of the credential', async () => {
  const { client_id, browser } = await asCredential('read');
  // No Secure: this address is plain HTTP. The page reads the second one.
  expect(browser.setCookies).toEqual([
    expect.stringMatching(/^fleet_console=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=43200$/),
    expect.stringMatching(/^fleet_csrf=[\w-]+; Path=\/; SameSite=Lax; Max-Age=43200$/),
  ]);
  expect(browser.session).toMatchObject({
    principal: { type: 'credential', id: client_id, name: 'test' },
    tenant: { tenant_id: api.tenantId, name: 'one' },
    scopes: ['read'],
  });
  expect(Buffer.from(browser.cookie.split('=')[1] ?? '', 'base64url').toString('latin1')).not.toContain('eyJ');
  expect((await browser.see()).body).toMatchObject({ session: browser.session });
  expect(await browser.post('/requests/get')).toBe('200');
  expect(await browser.post('/credentials/get')).toBe('403 forbidden');
  const audit = await api.client.post('/audit/get', { action: 'console.sign_in', principal: client_id });
  expect(audit.body).toMatchObject({ entries: [{ principal: { id: client_id }, ip: '127.0.0.1' }] });
});

test('a page that has lost the token of its session gets it again', async () => {
  const { browser } = await asCredential('read');
  const again = async (cookie: string) =>
    (await api.client.raw('/console/session', null, { cookie }, 'GET')).headers.getSetCookie();
  const csrf = `fleet_csrf=${browser.csrf}`;
  expect(await again(browser.cookie)).toEqual([`${csrf}; Path=/; SameSite=Lax; Max-Age=43200`]);
  expect(await again(`${browser.cookie}; ${csrf}`)).toEqual([]);
});

test('the cookie changes nothing without the token of its session, and counts from the own page only', async () => {
  const { browser } = await asCredential('full');
  const other = (await asCredential('full')).browser.csrf;
  expect(await browser.post('/credentials/get', {}, { 'x-csrf-token': '' })).toBe('403 forbidden');
  expect(await browser.post('/credentials/get', {}, { 'x-csrf-token': other })).toBe('403 forbidden');
  expect(await browser.post('/credentials/get', {}, { 'sec-fetch-site': 'same-site' })).toBe('401 unauthorized');
  expect(await browser.post('/credentials/get', {}, { 'sec-fetch-site': 'same-origin' })).toBe('200');
  const elsewhere = await signIn(await api.credentialOf(api.tenantId, ['read']), api, {
    'sec-fetch-site': 'cross-site',
  });
  expect([elsewhere.answer.status, elsewhere.setCookies]).toEqual([403, []]);
});

test('a link signs in once, and after ten minutes never', async () => {
  const { client_id } = await api.credentialOf(api.tenantId, ['full']);
  const link = await createSignInLink(api.db, api.tenantId, client_id);
  const [first, second] = await Promise.all([signIn({ link }), signIn({ link })]);
  expect([first.answer.status, second.answer.status].sort()).toEqual([200, 401]);
  expect((first.session ?? second.session)?.principal.id).toBe(client_id);
  const old = await createSignInLink(api.db, api.tenantId, client_id);
  await api.database.query("UPDATE sign_in_links SET expires_at = now() - interval '1 second'");
  expect((await signIn({ link: old })).answer.status).toBe(401);
  expect((await signIn({ link: 'x'.repeat(43) })).answer.status).toBe(401);
  const stored = await api.database.query('SELECT * FROM sign_in_links');
  expect(JSON.stringify(stored)).not.toContain(old);
});

test('a session ends when it is signed out, when its credential is revoked, and when its time is over', async () => {
  const { browser, ...credential } = await asCredential('admin');
  const second = await signIn(credential);
  expect(await browser.post('/console/sign_out')).toBe('200');
  await until(async () => (await browser.see()).status === 401);
  expect((await second.see()).status).toBe(200);
  const third = await signIn(credential);
  expect(await third.post('/console/sign_out', { everywhere: true })).toBe('200');
  await until(async () => (await second.see()).status === 401);
  const fourth = await signIn(credential);
  await api.client.ok(
    '/credentials/revoke',
    { credential_id: credential.client_id },
    CONSOLE_OPERATIONS.signOut.response,
  );
  await until(async () => (await fourth.see()).status === 401);
  expect((await signIn(credential)).answer.status).toBe(401);
});

test('a stream of events that a browser follows ends with its session', async () => {
  const { browser } = await asCredential('read');
  const response = await fetch(`${api.baseUrl}/telemetry/stream_events?type=message.resolved,message.received`, {
    headers: { cookie: browser.cookie },
  });
  expect(response.status).toBe(200);
  expect(await browser.post('/console/sign_out')).toBe('200');
  expect(await response.text()).toContain('"code":"unauthorized"');
});

test('neither credentials for agents nor operators sign in', async () => {
  const agent = await api.credentialOf(api.tenantId, ['read'], ['worker']);
  expect((await signIn(agent)).answer.status).toBe(403);
  const actor = { principal: { type: 'operator', id: 'cli:test' } } as const;
  const operator = await api.db.system((tx) => createOperator(tx, api.secrets, actor, 'night'));
  const { client_id, client_secret } = operator;
  expect((await signIn({ client_id, client_secret })).answer.status).toBe(403);
});

test('a token that is limited to a user starts, reads and ends no session', async () => {
  const { client_id, client_secret, browser } = await asCredential('read');
  const token = await api.tokenAs({ client_id, client_secret, user_id: 'ann' });
  const limited = { authorization: `Bearer ${token}` };
  const { answer, setCookies } = await signIn({}, api, limited);
  expect([answer.status, setCookies]).toEqual([400, []]);
  expect((await signIn({ client_id, client_secret, user_id: 'ann' })).answer.status).toBe(400);
  for (const cookie of ['', browser.cookie]) // its header counts, not the cookie beside it
    expect((await api.client.raw('/console/session', null, { ...limited, cookie }, 'GET')).status).toBe(403);
  expect(await browser.post('/console/sign_out', { everywhere: true }, limited)).toBe('403 forbidden');
  expect((await browser.see()).body).toMatchObject({ session: browser.session });
});

test('a forged or altered cookie is no session', async () => {
  const { browser } = await asCredential('read');
  const altered = browser.cookie.slice(0, -2);
  for (const cookie of ['fleet_console=', 'fleet_console=x', altered, `other=${browser.cookie}`])
    expect((await api.client.raw('/console/session', null, { cookie }, 'GET')).body).toEqual({
      ok: true,
      session: null,
    });
});

test('a credential has a hundred sessions, and a further one ends the oldest', async () => {
  const { browser, client_id } = await asCredential('read');
  await api.database.query(
    `INSERT INTO console_sessions (tenant_id, console_session, credential_id, created_at, expires_at)
     SELECT $1, 's' || n, $2, now() + make_interval(secs => n), now() + interval '1 hour' FROM generate_series(1, 99) n`,
    [api.tenantId, client_id],
  );
  expect(browser.session).toBeDefined();
  const count = () => api.database.query('SELECT 1 FROM console_sessions WHERE credential_id = $1', [client_id]);
  expect(await count()).toHaveLength(100);
  await api.client.ok('/credentials/get', {}, CredentialsGetResponse);
  const rotated = await api.client.post('/credentials/rotate', { credential_id: client_id });
  const { client_secret } = rotated.body as { client_secret: string };
  expect((await signIn({ client_id, client_secret })).answer.status).toBe(200);
  expect(await count()).toHaveLength(100);
  await until(async () => (await browser.see()).status === 401);
});

test('the page and its files: whole, from this origin only, in no frame', async () => {
  const page = await fetch(`${api.baseUrl}/console/inbox`);
  expect(page.status).toBe(200);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).not.toContain('unsafe');
  expect(policy).toContain("frame-ancestors 'none'");
  expect(page.headers.get('x-frame-options')).toBe('DENY');
  expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  const files = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '');
  expect(files.length).toBeGreaterThanOrEqual(3);
  for (const path of files) {
    expect(path).toMatch(/^\/console\/assets\//);
    const file = await fetch(`${api.baseUrl}${path}`);
    expect([file.status, file.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable']);
  }
  expect((await fetch(`${api.baseUrl}/console/assets/..%2findex.html`)).status).toBe(404);
});
