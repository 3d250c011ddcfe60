import { expect, test } from 'vitest';
import { endEarlierSignIns } from '../../../auth/people.js';
import { CONSOLE_OPERATIONS } from '../../../contracts/api/console.js';
import { RequestsGetResponse } from '../../../contracts/api/policies/requests.js';
import { AUDIT_OPERATIONS } from '../../../contracts/api/tenants/audit.js';
import type { OidcRole } from '../../../contracts/oidc-roles.js';
import { approvalsFixture } from '../../messages/approvals/approvals-fixture.js';
import { Browser } from '../../setup/sign-in/browser.js';
import { CLIENT, identityProvider } from '../../setup/sign-in/identity-provider.js';
import { until } from '../../setup/until.js';
import { type ServedApi, serveApi } from '../served-api.js';

const provider = await identityProvider({
  anna: { name: 'Anna', email: 'Anna@example.com', email_verified: true, groups: ['finance'] },
  bert: { name: 'Bert', email: 'anna@example.com', groups: ['finance'] },
  chef: { name: 'Chef', groups: ['chefs', 'elsewhere'] },
  olga: { name: 'Olga', groups: ['platform'] },
  none: { name: '<b>Nina</b>', groups: ['staff', '<script>'] },
  bare: { name: 'Bare' },
});
/** Filled in when the tenants are there. */
const roles: OidcRole[] = [];
const api = await serveApi({
  clocks: { credentialCheckMs: 50 },
  oidc: {
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: CLIENT.client_id,
    OIDC_CLIENT_SECRET: CLIENT.client_secret,
    OIDC_ROLES: roles,
  },
});
const other = await api.otherTenant();
roles.push(
  { role: 'finance', tenant: api.tenantId, scopes: ['read'], approvers: ['finance'] },
  { role: 'chefs', tenant: api.tenantId, scopes: ['admin'], approvers: [] },
  { role: 'elsewhere', tenant: other, scopes: ['read'], approvers: [] },
  { role: 'platform', operator: true, scopes: ['read'], approvers: [] },
);
const START = `${api.baseUrl}/console/oidc/start`;
const isCallback = (url: URL) => url.pathname === '/console/oidc/callback';
const { calling } = await approvalsFixture(api);

/** What the page of somebody does who is signed in. */
function pageOf(browser: Browser, on: ServedApi = api) {
  /** As its scripts read it. */
  const csrf = () => browser.cookies.get(new URL(on.baseUrl).host)?.get('fleet_csrf') ?? '';
  const post = async (path: string, body: object = {}, headers: Record<string, string> = {}) => {
    const init = { method: 'POST', body: JSON.stringify(body) };
    const sent = { 'content-type': 'application/json', 'x-csrf-token': csrf(), ...headers };
    const response = await browser.fetch(`${on.baseUrl}${path}`, { ...init, headers: sent });
    return { status: response.status, body: await response.json() };
  };
  const see = async () => {
    const { getSession, getSignIn } = CONSOLE_OPERATIONS;
    const response = await browser.fetch(`${on.baseUrl}${getSession.path}`);
    const session = response.ok ? getSession.response.parse(await response.json()).session : null;
    const how = getSignIn.response.parse(await (await browser.fetch(`${on.baseUrl}${getSignIn.path}`)).json());
    return { status: response.status, session, ...how };
  };
  const choose = async (tenant_id: string) => {
    const answer = await post('/console/choose_tenant', { tenant_id });
    await see();
    return answer.status;
  };
  const failure = async (path: string, body: object = {}, headers = {}) => {
    const { status, body: given } = await post(path, body, headers);
    return status === 200 ? '200' : `${status} ${(given as { code: string }).code}`;
  };
  return { post, see, choose, failure };
}

async function signIn(account: string) {
  provider.state.account = account;
  provider.open(api.baseUrl);
  const browser = new Browser();
  const visit = await browser.open(START);
  const page = pageOf(browser);
  return { browser, visit, ...page, ...(await page.see()) };
}

test('a person signs in with code, PKCE, state and nonce, and has the rights of their groups', async () => {
  const { visit, browser, session, provider: name, failure } = await signIn('anna');
  expect(visit.url.href).toBe(`${api.baseUrl}/console`);
  const asked = visit.way.find(({ origin }) => origin === provider.issuer);
  expect(Object.fromEntries(asked?.searchParams ?? [])).toMatchObject({
    response_type: 'code',
    code_challenge_method: 'S256',
    redirect_uri: `${api.baseUrl}/console/oidc/callback`,
    state: expect.stringMatching(/.{40}/),
    nonce: expect.stringMatching(/.{40}/),
  });
  for (const line of browser.received.filter((cookie) => cookie.startsWith('fleet_')))
    expect(line).toMatch(
      /^(fleet_(sign_in|console)=[\w-]*; Path=\/; HttpOnly|fleet_csrf=[\w-]*; Path=\/); SameSite=Lax; Max-Age=\d+$/,
    );
  expect([...(browser.cookies.get(new URL(api.baseUrl).host)?.keys() ?? [])]).toEqual(['fleet_console', 'fleet_csrf']);
  expect(session).toMatchObject({
    principal: { type: 'person', id: expect.stringMatching(/^per_[0-9a-f]{40}$/), name: 'Anna <anna@example.com>' },
    tenant: { tenant_id: api.tenantId },
    scopes: ['read'],
    may_switch: false,
  });
  expect(name).toBe(new URL(provider.issuer).host);
  expect(await failure('/requests/get')).toBe('200');
  expect(await failure('/requests/get', {}, { 'x-csrf-token': '' })).toBe('403 forbidden');
  expect(await failure('/credentials/get')).toBe('403 forbidden');
  const filter = { action: 'console.sign_in', principal: session?.principal.id };
  const { entries } = await api.client.ok('/audit/get', filter, AUDIT_OPERATIONS.getAudit.response);
  expect(entries[0]).toMatchObject({
    principal: session?.principal,
    after: {
      issuer: provider.issuer,
      subject: 'anna',
      scopes: ['read'],
      approver_names: ['anna@example.com', 'finance'],
    },
  });
});

test('who is named as an approver finds the request and decides as the person', async () => {
  const [anna, bert, chef] = [await signIn('anna'), await signIn('bert'), await signIn('chef')];
  await chef.choose(api.tenantId);
  const waiting = async (approvers: string[], quorum = 1) => {
    const { id, request } = await calling({ amount: 1 });
    const change = "UPDATE input_requests SET approvers = $2, quorum = $3, source = 'policy' WHERE request_id = $1";
    await api.database.query(change, [request.request_id, approvers, quorum]);
    return { id, request_id: request.request_id };
  };
  const mine = async ({ post }: Pick<typeof anna, 'post'>) =>
    RequestsGetResponse.parse((await post('/requests/get', { mine: true })).body).requests.map((one) => one.request_id);

  const byGroup = await waiting(['finance'], 2);
  const byEmail = await waiting(['anna@example.com']);
  const byId = await waiting([bert.session?.principal.id ?? '']);
  expect(new Set(await mine(anna))).toEqual(new Set([byGroup.request_id, byEmail.request_id]));
  // His provider has not verified the address that he says is his.
  expect(new Set(await mine(bert))).toEqual(new Set([byGroup.request_id, byId.request_id]));

  const approve = (by: typeof anna) => by.failure(`/messages/${byGroup.id}/resolve`, { resolution: 'approved' });
  expect([await approve(anna), await approve(anna), await approve(bert)]).toEqual([
    '200',
    '409 ALREADY_RESOLVED',
    '200',
  ]);
  const { body } = await chef.post('/requests/get_by_id', { request_id: byGroup.request_id });
  expect(body).toMatchObject({
    request: {
      decided: {
        principals: [anna, bert].map(({ session }) => ({ type: 'person', id: session?.principal.id })),
      },
    },
  });
});

test('an answer to another browser, with another state or another nonce, signs nobody in', async () => {
  provider.open(api.baseUrl);
  provider.state.account = 'anna';
  const browser = new Browser();
  const { url } = await browser.open(START, isCallback);
  const outcome = async (by: Browser, address: URL) => {
    const { status, text } = await by.open(address);
    expect(by.received.filter((cookie) => /^fleet_console=./.test(cookie))).toEqual([]);
    return `${status} ${text.includes('You are not signed in')}`;
  };
  expect(await outcome(new Browser(), url)).toBe('401 true');
  const elsewhere = new Browser();
  await elsewhere.open(START, isCallback);
  expect(await outcome(elsewhere, url)).toBe('401 true');

  const changed = new URL(url);
  changed.searchParams.set('state', 'x'.repeat(43));
  expect(await outcome(browser, changed)).toBe('401 true');
  // The cookie was for one answer.
  expect(await outcome(browser, url)).toBe('401 true');

  const third = new Browser();
  const isAuthorization = ({ origin, pathname }: URL) => origin === provider.issuer && pathname === '/auth';
  const { url: asked } = await third.open(START, isAuthorization);
  asked.searchParams.set('nonce', 'x'.repeat(43));
  expect(await outcome(third, asked)).toBe('401 true');

  const fourth = new Browser();
  const { url: fromThere } = await fourth.open(START, isCallback);
  fromThere.searchParams.set('iss', 'https://other.example');
  expect(await outcome(fourth, fromThere)).toBe('401 true');
});

test('nothing that an address carries leads elsewhere', async () => {
  provider.open(api.baseUrl);
  provider.state.account = 'anna';
  const visit = await new Browser().open(
    `${START}?return_to=https://evil.example&redirect_uri=https://evil.example&next=//evil.example`,
  );
  expect(visit.url.href).toBe(`${api.baseUrl}/console`);
  expect(visit.way.map(({ host }) => host).filter((host) => host.includes('evil'))).toEqual([]);
});

test('somebody without a role reads which values came, and what to ask for', async () => {
  const { visit, session, person } = await signIn('none');
  expect(visit.status).toBe(403);
  for (const text of ['groups', '<li>staff</li>', '&lt;script&gt;', 'OIDC_ROLES', '&lt;b&gt;Nina'])
    expect(visit.text).toContain(text);
  expect(visit.text).not.toContain('<li><script>');
  expect([session, person]).toEqual([null, null]);
  expect((await signIn('bare')).visit.text).toContain('sent no value of the claim <b>groups</b>');
  const refused = await signIn('');
  expect([refused.visit.status, refused.visit.text.includes('access_denied')]).toEqual([403, true]);
});

test('with rights in several tenants one is chosen, and another can be', async () => {
  const { visit, session, person, post, see, choose, failure } = await signIn('chef');
  expect([visit.url.pathname, session]).toEqual(['/console', null]);
  expect(person).toMatchObject({ name: 'Chef', is_operator: false });
  expect(await failure('/requests/get')).toBe('401 unauthorized');
  expect((await post('/console/get_tenants')).body).toMatchObject({
    tenants: [
      { tenant_id: api.tenantId, as_operator: false },
      { tenant_id: other, as_operator: false },
    ],
  });
  expect(await failure('/console/choose_tenant', { tenant_id: other }, { 'x-csrf-token': '' })).toBe('403 forbidden');
  expect(await choose('ten_unknown')).toBe(404);
  expect(await choose(other)).toBe(200);
  const first = (await see()).session;
  expect(first).toMatchObject({ tenant: { tenant_id: other }, scopes: ['read'], may_switch: true });
  expect(await choose(api.tenantId)).toBe(200);
  const second = (await see()).session;
  expect(second).toMatchObject({ tenant: { tenant_id: api.tenantId }, scopes: ['admin'] });
  expect(second?.principal.id).not.toBe(first?.principal.id);
  expect(await failure('/console/sign_out')).toBe('200');
  expect((await see()).person).toBeNull();
});

test('an operator sees all tenants, and reads in one for an hour as the operator', async () => {
  const { session, person, post, see, choose, failure } = await signIn('olga');
  expect([session, person?.is_operator]).toEqual([null, true]);
  const listed = await post('/console/get_tenants', { search: 'TWO' });
  expect(listed.body).toMatchObject({ tenants: [{ tenant_id: other, name: 'two', as_operator: true }] });
  expect(await choose(api.tenantId)).toBe(200);
  const taken = (await see()).session;
  expect(taken).toMatchObject({
    principal: { type: 'operator', id: expect.stringMatching(/^op_/), name: 'Olga' },
    scopes: ['read'],
  });
  expect(Date.parse(taken?.expires_at ?? '') - Date.now()).toBeLessThan(3_600_001);
  const { id } = await calling({ amount: 2 });
  expect(await failure(`/messages/${id}/resolve`, { resolution: 'approved' })).toBe('403 forbidden');
  expect(await failure('/requests/get')).toBe('200');
  expect(await failure('/audit/get')).toBe('403 forbidden');
  expect(await failure('/tenants/create', { name: 'mine' })).toBe('403 forbidden');
  const filter = { principal: taken?.principal.id };
  const { entries } = await api.client.ok('/audit/get', filter, AUDIT_OPERATIONS.getAudit.response);
  expect(entries).toMatchObject([
    {
      principal: { type: 'operator' },
      action: 'console.sign_in',
      target: { name: 'Olga' },
      after: { subject: 'olga' },
    },
  ]);
});

test('an operator signs out also when the hour is over', async () => {
  const { browser, see, choose, failure } = await signIn('olga');
  expect(await choose(api.tenantId)).toBe(200);
  const { session } = await see();
  const end = 'DELETE FROM console_sessions WHERE credential_id = $1';
  await api.database.query(end, [session?.principal.id]);
  await until(async () => (await see()).status === 401);
  expect((await see()).person).toMatchObject({ name: 'Olga' });
  const cookies = new Map(browser.cookies.get(new URL(api.baseUrl).host));
  expect(await failure('/console/sign_out', {}, { 'x-csrf-token': '' })).toBe('403 forbidden');
  expect(await failure('/console/sign_out')).toBe('200');
  browser.cookies.set(new URL(api.baseUrl).host, cookies); // somebody kept them
  expect((await see()).person).toBeNull();
});

test('sessions end when they are revoked, and only a new sign-in brings them back', async () => {
  const [first, second, chef] = [await signIn('anna'), await signIn('anna'), await signIn('chef')];
  const credential_id = first.session?.principal.id ?? '';
  expect(second.session?.principal.id).toBe(credential_id);
  const revoke = () => api.client.post('/credentials/revoke', { credential_id });
  expect(await api.client.failure('/credentials/rotate', { credential_id })).toBe('404 NOT_FOUND');
  expect((await revoke()).status).toBe(200);
  await until(async () => (await first.see()).status === 401 && (await second.see()).status === 401);
  expect(await first.choose(api.tenantId)).toBe(401);
  const third = await signIn('anna');
  expect(third.session?.principal.id).toBe(credential_id);
  expect([(await first.see()).status, (await second.see()).status]).toEqual([401, 401]);

  const fourth = await signIn('anna');
  expect(await third.failure('/console/sign_out', { everywhere: true })).toBe('200');
  await until(async () => (await fourth.see()).status === 401);
  expect((await fourth.see()).person).toBeNull();
  expect(await chef.choose(other)).toBe(200);
});

test('a start with other roles ends the sessions of people, one with the same does not', async () => {
  await endEarlierSignIns(api.db, roles);
  const { see } = await signIn('anna');
  await endEarlierSignIns(api.db, roles);
  expect((await see()).status).toBe(200);
  await endEarlierSignIns(api.db, roles.slice(1));
  await until(async () => (await see()).status === 401);
  expect((await see()).person).toBeNull();
});

test('no secret is that of a person, and no end user has the id of one', async () => {
  const { session } = await signIn('anna');
  const client_id = session?.principal.id ?? '';
  const asking = async (body: object) => {
    const headers = { 'content-type': 'application/json' };
    return (await api.client.raw('/auth/get_token', JSON.stringify(body), headers)).status;
  };
  for (const client_secret of ['x', '0'.repeat(43)]) expect(await asking({ client_id, client_secret })).toBe(401);
  const service = await api.credentialOf(api.tenantId, ['admin']);
  expect(await asking({ ...service, user_id: client_id })).toBe(400);
});

test('while the provider is away a page says so, and it is asked anew', async () => {
  const fresh = await serveApi({
    beside: api,
    oidc: { OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: 'fleet', OIDC_CLIENT_SECRET: 'x', OIDC_ROLES: roles },
  });
  provider.close();
  const away = await new Browser().open(`${fresh.baseUrl}/console/oidc/start`);
  expect([away.status, away.text.includes('does not work right now')]).toEqual([503, true]);
  provider.open(fresh.baseUrl);
  provider.state.account = 'anna';
  const browser = new Browser();
  const { url } = await browser.open(`${fresh.baseUrl}/console/oidc/start`, isCallback);
  provider.close();
  expect((await browser.open(url)).status).toBe(503);
  // It does not take the platform's secret: nothing that the person could put right.
  provider.open(fresh.baseUrl);
  expect((await new Browser().open(`${fresh.baseUrl}/console/oidc/start`)).status).toBe(503);
});

test('without a provider there is none', async () => {
  const plain = await serveApi({ beside: api });
  expect((await new Browser().open(`${plain.baseUrl}/console/oidc/start`)).status).toBe(404);
  expect((await pageOf(new Browser(), plain).see()).provider).toBeNull();
});
