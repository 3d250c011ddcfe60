import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Scope } from '../contracts/primitives.js';
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

type Place = { db: Db; secrets: Secrets };

async function ensureCredential(
  { db, secrets }: Place,
  file: string,
  fields: { name: string; scopes: Scope[]; agent_types?: string[] },
  tenantOf: () => Promise<string>,
): Promise<FirstCredential> {
  const known = await stored(file);
  if (known && (await verifySecret(db, secrets, known))) return known;
  const tenantId = await tenantOf();
  const made = await db.tenant(tenantId, (tx) => createCredential(tx, secrets, tenantId, fields));
  const issued = { tenant_id: tenantId, client_id: made.credential.client_id, client_secret: made.client_secret };
  await writeAtomic(file, `${JSON.stringify(issued, null, 2)}\n`, 0o600);
  return issued;
}

/**
 * The first tenant and credential, made once and kept in `credential.json` (mode 0600) of the data directory. One that the database no
 * longer knows (another database, a revoked credential) is replaced.
 */
export function ensureFirstCredential(place: Place, dataDir: string): Promise<FirstCredential> {
  const fields = { name: 'first credential', scopes: ['full' as const] };
  return ensureCredential(place, join(dataDir, 'credential.json'), fields, async () => {
    return (await createTenant(place.db, 'default')).tenant_id;
  });
}

/** The example agents' credential: it reads, and joins as these agent types, no more. Kept in `examples.json`, made anew for another tenant. */
export async function ensureExampleCredential(
  place: Place,
  dataDir: string,
  tenantId: string,
  agentTypes: string[],
): Promise<FirstCredential> {
  const file = join(dataDir, 'examples.json');
  if ((await stored(file))?.tenant_id !== tenantId) await rm(file, { force: true });
  const fields = { name: 'example agents', scopes: ['read' as const], agent_types: agentTypes };
  return ensureCredential(place, file, fields, async () => tenantId);
}
