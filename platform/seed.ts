import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { createCredential, verifySecret } from '../auth/credentials.js';
import { createTenant } from '../auth/tenants.js';
import type { Scope } from '../contracts/primitives.js';
import { ANY_AGENT_TYPE } from '../contracts/primitives.js';
import type { Db } from '../db/pool.js';
import { writeAtomic } from '../embedded/atomic-file.js';
import type { Secrets } from '../runtime/secrets.js';

const StoredCredential = z.object({ tenant_id: z.string(), client_id: z.string(), client_secret: z.string() });

/** A credential that `npm start` makes and keeps in the data directory. */
export type StoredCredential = z.infer<typeof StoredCredential>;

async function stored(file: string): Promise<StoredCredential | null> {
  try {
    return StoredCredential.parse(JSON.parse(await readFile(file, 'utf8')));
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
): Promise<StoredCredential> {
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
export function ensureFirstCredential(place: Place, dataDir: string): Promise<StoredCredential> {
  const fields = { name: 'first credential', scopes: ['full' as const] };
  return ensureCredential(place, join(dataDir, 'credential.json'), fields, async () => {
    return (await createTenant(place.db, 'default')).tenant_id;
  });
}

/** A credential for agents: its tokens act as agents of these types, and as nothing else. Made anew for another tenant. */
async function ensureAgentsCredential(
  place: Place,
  file: string,
  tenantId: string,
  fields: { name: string; agent_types: string[] },
): Promise<StoredCredential> {
  if ((await stored(file))?.tenant_id !== tenantId) await rm(file, { force: true });
  return ensureCredential(place, file, { ...fields, scopes: ['read'] }, async () => tenantId);
}

/** The credential for the user's own agents, of any type. Kept in `agents.json`. */
export function ensureAgentCredential(place: Place, dataDir: string, tenantId: string): Promise<StoredCredential> {
  const fields = { name: 'agents', agent_types: [ANY_AGENT_TYPE] };
  return ensureAgentsCredential(place, join(dataDir, 'agents.json'), tenantId, fields);
}

/** The example agents' credential, of these types. Kept in `examples.json`. */
export function ensureExampleCredential(
  place: Place,
  dataDir: string,
  tenantId: string,
  agentTypes: string[],
): Promise<StoredCredential> {
  const fields = { name: 'example agents', agent_types: agentTypes };
  return ensureAgentsCredential(place, join(dataDir, 'examples.json'), tenantId, fields);
}
