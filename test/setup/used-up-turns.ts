import type { Db, Tx } from '../../db/pool.js';

/** Uses up the turns of a tenant at the database, until `release`. */
export async function useUpTurns(db: Db, tenantId: string): Promise<{ release(): Promise<void> }> {
  let over = false;
  const hold = async (tx: Tx): Promise<void> => {
    while (!over) await tx.query('SELECT pg_sleep(0.1)'); // the server ends a transaction that does nothing
  };
  const held: Promise<unknown>[] = [];
  // The last one finds no turn, and may be refused.
  while (db.counts().turns.waiting === 0) held.push(db.tenant(tenantId, hold).catch((error: unknown) => error));
  return {
    release: async () => {
      over = true;
      await Promise.all(held);
    },
  };
}
