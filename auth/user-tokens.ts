import { type Author, recordAudit } from '../audit/record-audit.js';
import type { Db } from '../db/pool.js';

const EPOCH = 'SELECT token_epoch FROM user_token_epochs WHERE tenant_id = $1 AND user_id = $2';
const NEXT_EPOCH = `
  INSERT INTO user_token_epochs AS u (tenant_id, user_id, token_epoch) VALUES ($1, $2, 1)
  ON CONFLICT (tenant_id, user_id) DO UPDATE SET token_epoch = u.token_epoch + 1`;

/** The epoch of a user's tokens: those of earlier ones are revoked. Not a time, since the clocks of processes differ. */
export async function tokenEpoch(db: Db, tenantId: string, userId: string): Promise<number> {
  const [row] = await db.tenant(tenantId, (tx) => tx.query<{ token_epoch: number }>(EPOCH, [tenantId, userId]));
  return row?.token_epoch ?? 0;
}

/** Revokes all tokens of a user, and within 5 s ends their streams. The user may get new ones. */
export async function revokeUser(db: Db, author: Author, userId: string): Promise<void> {
  await db.tenant(author.tenant_id, async (tx) => {
    await tx.query(NEXT_EPOCH, [author.tenant_id, userId]);
    await recordAudit(tx, author, { action: 'user.revoke', target: { type: 'user', id: userId } });
  });
}
