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

/** A credential that `npm start` creates and stores in the data directory. */
export type StoredCredential = z.infer<typeof StoredCredential>;

async function readStored(file: string): Promise<StoredCredential | null> {
  try {
    return StoredCredential.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (missing || error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}

type Deps = { db: Db; secrets: Secrets };

async function ensureCredential(
  { db, secrets }: Deps,
  file: string,
  fields: { name: string; scopes: Scope[]; agent_types?: string[] },
  tenantOf: () => Promise<string>,
): Promise<StoredCredential> {
  const stored = await readStored(file);
  if (stored && (await verifySecret(db, secrets, stored))) return stored;
  const tenantId = await tenantOf();
  const created = await db.tenant(tenantId, (tx) => createCredential(tx, secrets, tenantId, fields));
  const issued = { tenant_id: tenantId, client_id: created.credential.client_id, client_secret: created.client_secret };
  await writeAtomic(file, `${JSON.stringify(issued, null, 2)}\n`, 0o600);
  return issued;
}

/**
 * The first tenant and credential, created once and stored in `credential.json` (mode 0600) of the data directory. A credential that is not
 * valid in the database (another database, a revocation) is replaced.
 */
export function ensureFirstCredential(deps: Deps, dataDir: string): Promise<StoredCredential> {
  const fields = { name: 'first credential', scopes: ['full' as const] };
  return ensureCredential(
    deps,
    join(dataDir, 'credential.json'),
    fields,
    async () => (await createTenant(deps.db, 'default')).tenant_id,
  );
}

/** A credential for agents: its tokens can only act as agents of these types. A credential of another tenant is replaced. */
async function ensureAgentsCredential(
  deps: Deps,
  file: string,
  tenantId: string,
  fields: { name: string; agent_types: string[] },
): Promise<StoredCredential> {
  if ((await readStored(file))?.tenant_id !== tenantId) await rm(file, { force: true });
  return ensureCredential(deps, file, { ...fields, scopes: ['read'] }, async () => tenantId);
}

/** The credential for the user's agents, of any type. Stored in `agents.json`. */
export function ensureAgentCredential(deps: Deps, dataDir: string, tenantId: string): Promise<StoredCredential> {
  const fields = { name: 'agents', agent_types: [ANY_AGENT_TYPE] };
  return ensureAgentsCredential(deps, join(dataDir, 'agents.json'), tenantId, fields);
}

/** The credential of the example agents. Stored in `examples.json`. */
export function ensureExampleCredential(
  deps: Deps,
  dataDir: string,
  tenantId: string,
  agentTypes: string[],
): Promise<StoredCredential> {
  const fields = { name: 'example agents', agent_types: agentTypes };
  return ensureAgentsCredential(deps, join(dataDir, 'examples.json'), tenantId, fields);
}
