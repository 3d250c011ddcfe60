import { expect, test } from 'vitest';
import { Logins } from '../../api/logins.js';
import type { Credential } from '../../contracts/api/auth.js';
import type { PlatformError } from '../../runtime/errors.js';

const RIGHT = { credential_id: 'cred_a' } as Credential;

/** What a login is answered: the credential's id, or the code of its refusal. */
function logins(bounds: { ofClient: number; ofAll: number }) {
  const verify = async ({ client_secret }: { client_secret: string }) => (client_secret === 'right' ? RIGHT : null);
  const all = new Logins(verify, null, bounds);
  return (client_secret: string, client_id = 'cred_a', address = '192.0.2.1'): Promise<string> =>
    all.credentialOf({ client_id, client_secret }, address).then(
      (credential) => credential.credential_id,
      (error: PlatformError) => error.code,
    );
}

test('wrong secrets are counted by client and address together, and a right one passes all the same', async () => {
  const login = logins({ ofClient: 2, ofAll: 100 });
  expect([await login('a'), await login('b'), await login('c')]).toEqual([
    'unauthorized',
    'unauthorized',
    'RATE_LIMITED',
  ]);
  expect(await login('right')).toBe('cred_a');
  expect(await login('a', 'cred_neighbour')).toBe('unauthorized');
  expect(await login('a', 'cred_a', '192.0.2.2')).toBe('unauthorized');
});

test('beyond the bound of all together every wrong secret is told to wait, and no right one', async () => {
  const login = logins({ ofClient: 10, ofAll: 2 });
  await login('a', 'cred_b', '192.0.2.2');
  await login('a', 'cred_c', '192.0.2.3');
  expect(await login('a', 'cred_d', '192.0.2.4')).toBe('RATE_LIMITED');
  expect(await login('right')).toBe('cred_a');
});
