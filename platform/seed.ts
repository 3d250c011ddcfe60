import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { platformAuthor } from '../audit/record-audit.js';
import { createCredential, type NewCredential, verifySecret } from '../auth/credentials.js';
import { createTenant } from '../auth/tenants.js';
import { ANY_AGENT_TYPE } from '../contracts/primitives.js';
import { onceReachable } from '../db/once-reachable.js';
import { writeAtomic } from '../embedded/atomic-file.js';
import { EXAMPLES } from './examples.js';
import type { Services } from './services.js';

const StoredCredential = z.object({ tenant_id: z.string(), client_id: z.string(), client_secret: z.string() });

/** A credential that `npm start` creates and stores in the data directory. */
export type StoredCredential = z.infer<typeof StoredCredential>;

/** The stored credentials, by the names of their files. The tokens of the agents' credentials can only act as agents of these types. */
const CREDENTIALS = {
  credential: { name: 'first credential', scopes: ['full'] },
  agents: { name: 'agents', scopes: ['read'], agent_types: [ANY_AGENT_TYPE] },
  examples: { name: 'example agents', scopes: ['read'], agent_types: EXAMPLES },
} satisfies Record<string, NewCredential>;

async function readStored(file: string): Promise<StoredCredential | null> {
  try {
    return StoredCredential.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (missing || error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}

/**
 * A credential that is created once and stored in the data directory (mode 0600). One of another tenant, or that is not valid in the database
 * (another database, a revocation), is replaced.
 * @param tenantId the stored credential's tenant by default, or a new one
 */
export async function ensureCredential(
  { db, secrets, log }: Pick<Services, 'db' | 'secrets' | 'log'>,
  dataDir: string,
  which: keyof typeof CREDENTIALS,
  tenantId?: string,
): Promise<StoredCredential> {
  const file = join(dataDir, `${which}.json`);
  const stored = await readStored(file);
  const usable = stored && (tenantId ?? stored.tenant_id) === stored.tenant_id;
  if (usable && (await onceReachable(() => verifySecret(db, secrets, stored), log))) return stored;
  const newTenant = () => createTenant(db, platformAuthor('', 'start'), 'default');
  const tenant_id = tenantId ?? (await onceReachable(newTenant, log)).tenant_id;
  const author = platformAuthor(tenant_id, 'start');
  const newCredential = () => db.tenant(tenant_id, (tx) => createCredential(tx, secrets, author, CREDENTIALS[which]));
  const created = await onceReachable(newCredential, log);
  const issued = { tenant_id, client_id: created.credential.client_id, client_secret: created.client_secret };
  await writeAtomic(file, `${JSON.stringify(issued, null, 2)}\n`, 0o600);
  return issued;
}
