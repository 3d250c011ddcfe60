import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { createCredential, verifySecret } from '../db/credentials.js';
import type { Db } from '../db/pool.js';
import { createTenant } from '../db/tenants.js';
import { writeAtomic } from '../embedded/atomic-file.js';
import type { Secrets } from '../runtime/secrets.js';

const FirstCredential = z.object({ tenant_id: z.string(), client_id: z.string(), client_secret: z.string() });

/** The credential that `npm start` makes for its user: scope `full`. */
export type FirstCredential = z.infer<typeof FirstCredential>;

async function stored(file: string): Promise<FirstCredential | null> {
  try {
    return FirstCredential.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (missing || error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}

/**
 * The first tenant and credential, made once and kept in `credential.json` (mode 0600) of the data directory. One that the database no
 * longer knows (another database, a revoked credential) is replaced.
 */
export async function ensureFirstCredential(
  { db, secrets }: { db: Db; secrets: Secrets },
  dataDir: string,
): Promise<FirstCredential> {
  const file = join(dataDir, 'credential.json');
  const known = await stored(file);
  if (known && (await verifySecret(db, secrets, known))) return known;
  const tenant = await createTenant(db, 'default');
  const made = await db.tenant(tenant.tenant_id, (tx) =>
    createCredential(tx, secrets, tenant.tenant_id, { name: 'first credential', scopes: ['full'] }),
  );
  const first = {
    tenant_id: tenant.tenant_id,
    client_id: made.credential.client_id,
    client_secret: made.client_secret,
  };
  await writeAtomic(file, `${JSON.stringify(first, null, 2)}\n`, 0o600);
  return first;
}
