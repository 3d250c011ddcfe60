import type { Db, Tx } from './pool.js';

/** Does the work in a transaction that is undone, to learn what it would give. @throws as the work does */
export async function rehearse<T>(db: Pick<Db, 'tenant'>, tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  const undo = new Error('the transaction is undone');
  let given: { result: T } | undefined;
  await db
    .tenant(tenantId, async (tx) => {
      given = { result: await work(tx) };
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  if (!given) throw undo;
  return given.result;
}
