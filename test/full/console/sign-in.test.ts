import { expect, test } from 'vitest';
import type { OidcRole } from '../../../contracts/oidc-roles.js';
import { serveApi } from '../../api/served-api.js';
import { CLIENT, identityProvider } from '../../setup/sign-in/identity-provider.js';
import { consoleBrowser, violations } from './browser.js';

const provider = await identityProvider({ olga: { name: 'Olga', groups: ['platform', 'staff'] } });
const roles: OidcRole[] = [{ role: 'platform', operator: true, scopes: ['read'], approvers: [] }];
const api = await serveApi({
  sequencer: true,
  oidc: {
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: CLIENT.client_id,
    OIDC_CLIENT_SECRET: CLIENT.client_secret,
    OIDC_ROLES: roles,
  },
});
roles.push({ role: 'staff', tenant: api.tenantId, scopes: ['admin'], approvers: [] });
await api.otherTenant();
provider.open(api.baseUrl);
const { newPage } = await consoleBrowser(api);

test('a person signs in with the provider, comes back to the page, chooses a tenant, and another', async () => {
  const { page, problems } = await newPage();
  await page.goto(`${api.baseUrl}/console/fleet?show=offline&q=pay`);
  const button = page.getByRole('link', { name: `Sign in with ${new URL(provider.issuer).host}` });
  await button.waitFor();
  expect(await violations(page)).toEqual([]);
  await button.click();
  await page.getByRole('heading', { name: 'Choose a tenant' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: api.tenantId }).click();
  await page.getByText('one · admin').waitFor();
  const back = new URL(page.url());
  expect([back.pathname, ...back.searchParams]).toEqual(['/console/fleet', ['q', 'pay'], ['show', 'offline']]);
  await page.getByRole('button', { name: 'Switch tenant' }).click();
  await page.getByRole('button', { name: 'two as operator' }).click();
  await page.getByText('two · read').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await button.waitFor();
  expect(problems).toEqual([]);
});
