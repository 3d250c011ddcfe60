import { afterEach, expect, test, vi } from 'vitest';
import { OidcProvider } from '../../../auth/oidc.js';

afterEach(() => vi.unstubAllGlobals());

test.each([
  ['{tenantid}', 'common', false],
  ['11111111-2222-3333-4444-555555555555', '11111111-2222-3333-4444-555555555555', true],
])('the issuer of %s, which stands for every organization or for one', async (said, path, isTaken) => {
  const base = 'https://login.microsoftonline.com';
  const authorization_endpoint = `${base}/${path}/oauth2/v2.0/authorize`;
  vi.stubGlobal('fetch', async () => Response.json({ issuer: `${base}/${said}/v2.0`, authorization_endpoint }));
  const settings = { issuer: `${base}/${path}/v2.0`, clientId: 'fleet', clientSecret: 'x', claim: 'roles' };
  const begun = new OidcProvider(settings, () => 'https://fleet.example/console/oidc/callback').begin(60);
  if (isTaken) expect((await begun).url.origin).toBe(base);
  else await expect(begun).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});
