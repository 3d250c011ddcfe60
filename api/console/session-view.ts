import { choicesOf, findSignIn } from '../../auth/people.js';
import { readTenant } from '../../auth/tenants.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { ConsoleSession } from '../../contracts/api/console.js';
import { principalOf } from '../../contracts/permissions.js';
import type { Db } from '../../db/pool.js';

const NAME = 'SELECT name FROM credentials WHERE credential_id = $1';

/** Whether a person may choose among tenants. */
async function maySwitch(db: Db, signInId: string | undefined): Promise<boolean> {
  const signIn = signInId === undefined ? null : await findSignIn(db, signInId);
  return signIn !== null && (await choicesOf(db, signIn)).length > 1;
}

/** Who is signed in, as the page sees it. @param signInId of a person */
export async function sessionView(db: Db, caller: Caller, signInId?: string): Promise<ConsoleSession> {
  const { tenant_id, scopes, exp } = caller;
  const { id, type } = principalOf(caller);
  const { tenant, known } = await db.system(async (tx) => {
    const [credential] = await tx.query<{ name: string }>(NAME, [id]);
    return { tenant: await readTenant(tx, tenant_id), known: credential };
  });
  return {
    principal: { type, id, ...(known && { name: known.name }) },
    tenant: { tenant_id, name: tenant.name },
    scopes,
    expires_at: new Date(exp * 1_000).toISOString(),
    may_switch: await maySwitch(db, signInId),
  };
}
