import { createCredential, type NewCredential } from '../../auth/credentials.js';
import { createTenant } from '../../auth/tenants.js';
import type { Db } from '../../db/pool.js';
import { createSecrets } from '../../runtime/secrets.js';
import { testAuthor } from './author.js';

/** Puts a tenant on the record of a platform that has this secret key. `issue` makes a credential of it, for everything where nothing is said. */
export async function newTenant(db: Db, secretKey: string) {
  const secrets = createSecrets(secretKey);
  const { tenant_id } = await createTenant(db, testAuthor(''), 'test');
  const issue = async (fields: NewCredential = { name: 'test', scopes: ['full'] }) => {
    const { credential, client_secret } = await db.tenant(tenant_id, (tx) =>
      createCredential(tx, secrets, testAuthor(tenant_id), fields),
    );
    return { client_id: credential.client_id, client_secret };
  };
  return { tenant_id, issue };
}
