import { setTimeout as delay } from 'node:timers/promises';
import type { Db, Tx } from '../db/pool.js';
import { SEALED, type SealedColumn } from '../runtime/sealed-columns.js';
import type { Secrets } from '../runtime/secrets.js';
import { countUnhashed } from './credentials.js';
import { keysInUse, SecretKeyMismatch, storeKeysInUse } from './secret-check.js';

/** Values that one transaction seals anew. */
const AT_ONCE = 200;
/** Until every process has noticed the new key: they look every 2 s. Before that, one may still seal with the old key. */
const NOTICED_MS = 10_000;

/** Between two looks whether older transactions have ended. */
const LOOK_MS = 200;

/** What a rotation did. */
export interface RotationReport {
  /** Values sealed anew by this run, by table. */
  sealed_anew: Record<string, number>;
  /** Client secrets that are hashed with an older key: each is hashed anew at its next use. They need that key until then. */
  credentials_left: number;
}

/** Has the database use the new key; nothing if it does already. @throws SecretKeyMismatch when it uses neither */
async function switchKey(tx: Tx, secrets: Secrets, next: string): Promise<void> {
  const stored = await keysInUse(tx, true);
  if (!stored || !secrets.has(stored.inUse))
    throw new SecretKeyMismatch('The database uses neither of these secret keys.');
  if (stored.inUse === next) return;
  if (stored.before !== null)
    throw new SecretKeyMismatch('A rotation to another secret key is not finished: finish it first.');
  await storeKeysInUse(tx, { inUse: next, before: stored.inUse });
}

/**
 * Seals the next values of a column anew.
 * @param after the key of the last value before them
 * @returns the last key that it looked at, undefined at the end; how many values another key had sealed; and how many of them it sealed
 * anew, the others having changed meanwhile
 */
async function sealNext(
  tx: Tx,
  secrets: Secrets,
  { table, key, column, purpose }: SealedColumn,
  after: string[],
): Promise<{ last: string[] | undefined; found: number; sealed: number }> {
  const places = key.map((_, index) => `$${index + 1}`);
  const rows = await tx.query<{ key: string[]; value: Buffer }>(
    `SELECT ARRAY[${key.join()}] AS key, ${column} AS value FROM ${table}
      WHERE (${key.join()}) > (${places.join()}) AND ${column} IS NOT NULL ORDER BY ${key.join()} LIMIT ${AT_ONCE}`,
    after,
  );
  const found = rows.flatMap((row) => {
    const anew = secrets.sealAnew(row.value, purpose);
    return anew ? [{ ...row, anew }] : [];
  });
  const keys = places.map((place) => `${place}::text[]`).join();
  const sealed = await tx.query(
    `UPDATE ${table} t SET ${column} = n.anew
       FROM unnest(${keys}, $${key.length + 1}::bytea[], $${key.length + 2}::bytea[]) AS n (${key.join()}, value, anew)
      WHERE ${key.map((name) => `t.${name} = n.${name}`).join(' AND ')} AND t.${column} = n.value RETURNING 1`,
    [
      ...key.map((_, index) => found.map((row) => row.key[index])),
      found.map(({ value }) => value),
      found.map(({ anew }) => anew),
    ],
  );
  return { last: rows.at(-1)?.key, found: found.length, sealed: sealed.length };
}

/** Seals a column anew, in short transactions with pauses of their own length. @returns as `sealNext` */
async function sealColumn(db: Db, secrets: Secrets, column: SealedColumn): Promise<{ found: number; sealed: number }> {
  const total = { found: 0, sealed: 0 };
  for (let after: string[] | undefined = column.key.map(() => ''); after; ) {
    const from: string[] = after;
    const startedAt = performance.now();
    const portion = await db.system((tx) => sealNext(tx, secrets, column, from));
    total.found += portion.found;
    total.sealed += portion.sealed;
    after = portion.last;
    await delay(performance.now() - startedAt);
  }
  return total;
}

/** Waits for the transactions that are under way: one may have sealed a value with the old key that no look sees before it commits. */
async function endOfTransactions(db: Db): Promise<void> {
  const select = (value: string) => `SELECT ${value} AS value`;
  const [begun] = await db.system((tx) =>
    tx.query<{ value: string }>(select('pg_snapshot_xmax(pg_current_snapshot())::text')),
  );
  const areOver = select('pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8');
  for (;;) {
    const [look] = await db.system((tx) => tx.query<{ value: boolean }>(areOver, [begun?.value]));
    if (look?.value) return;
    await delay(LOOK_MS);
  }
}

/**
 * Rotates the secret key while the platform runs: from here on the new key is in use and the old one accepted for reading; then everything that
 * is sealed is sealed anew. A run that dies is finished by the next.
 * @param secrets holds both keys
 * @param next the check value of the new key
 * @param noticedMs how long to wait until every process uses the new key
 * @throws SecretKeyMismatch when the database uses another key, or an earlier rotation is not finished
 */
export async function rotateSecretKey(
  db: Db,
  secrets: Secrets,
  next: string,
  noticedMs = NOTICED_MS,
): Promise<RotationReport> {
  await db.system((tx) => switchKey(tx, secrets, next));
  secrets.activate(next);
  await delay(noticedMs);
  await endOfTransactions(db);
  const sealed_anew: Record<string, number> = {};
  // Until a whole turn finds nothing: a process that noticed late may have sealed something with the old key meanwhile.
  for (let left = 1; left > 0; ) {
    left = 0;
    for (const column of Object.values(SEALED)) {
      const { found, sealed } = await sealColumn(db, secrets, column);
      sealed_anew[column.table] = (sealed_anew[column.table] ?? 0) + sealed;
      left += found;
    }
  }
  await db.system((tx) => storeKeysInUse(tx, { inUse: next, before: null }));
  return { sealed_anew, credentials_left: await countUnhashed(db, next) };
}
