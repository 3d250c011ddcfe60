import { setTimeout as delay } from 'node:timers/promises';
import type { Db, Tx } from '../db/pool.js';
import { SEALED, type SealedColumn } from '../runtime/sealed-columns.js';
import type { Secrets } from '../runtime/secrets.js';

/** Values that one transaction seals anew. */
const AT_ONCE = 200;
/** Unreadable values that a report names. */
const NAMED_MAX = 100;

/** What was sealed with the key in use, and what could not be. */
export interface SealedAnew {
  /** Values sealed anew by this run, by table. */
  sealed_anew: Record<string, number>;
  /** Values that none of the keys opens, by table; empty when there are none. */
  unreadable: Record<string, number>;
  /** The first 100 of them: the table and the primary key. */
  unreadable_rows: string[];
}

/** A portion of a column, or the whole. */
interface Portion {
  /** Values that another key had sealed. */
  found: number;
  /** How many of them were sealed anew; the others have changed meanwhile. */
  sealed: number;
  /** Values that none of the keys opens, and the primary keys of the first of them. */
  unreadable: number;
  unreadableKeys: string[][];
}

/**
 * Seals the next values of a column anew.
 * @param after the primary key of the last value before them
 * @returns also the last primary key that it looked at, undefined at the end
 */
async function sealNext(
  tx: Tx,
  secrets: Pick<Secrets, 'sealAnew'>,
  { table, key, column, purpose }: SealedColumn,
  after: string[],
): Promise<Portion & { last: string[] | undefined }> {
  const places = key.map((_, index) => `$${index + 1}`);
  const rows = await tx.query<{ key: string[]; value: Buffer }>(
    `SELECT ARRAY[${key.join()}] AS key, ${column} AS value FROM ${table}
      WHERE (${key.join()}) > (${places.join()}) AND ${column} IS NOT NULL ORDER BY ${key.join()} LIMIT ${AT_ONCE}`,
    after,
  );
  const looked = rows.map((row) => ({ ...row, anew: secrets.sealAnew(row.value, purpose) }));
  const found = looked.filter(({ anew }) => Buffer.isBuffer(anew));
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
  const unreadableKeys = looked.filter(({ anew }) => anew === 'unreadable').map((row) => row.key);
  const counts = { found: found.length, sealed: sealed.length, unreadable: unreadableKeys.length };
  return { last: rows.at(-1)?.key, ...counts, unreadableKeys };
}

/** Seals a column anew, in short transactions with pauses of their own length. */
async function sealColumn(db: Db, secrets: Pick<Secrets, 'sealAnew'>, column: SealedColumn): Promise<Portion> {
  const total: Portion = { found: 0, sealed: 0, unreadable: 0, unreadableKeys: [] };
  for (let after: string[] | undefined = column.key.map(() => ''); after; ) {
    const from: string[] = after;
    const startedAt = performance.now();
    const portion = await db.system((tx) => sealNext(tx, secrets, column, from));
    total.found += portion.found;
    total.sealed += portion.sealed;
    total.unreadable += portion.unreadable;
    total.unreadableKeys = [...total.unreadableKeys, ...portion.unreadableKeys].slice(0, NAMED_MAX);
    after = portion.last;
    await delay(performance.now() - startedAt);
  }
  return total;
}

/**
 * Seals every value that another key has sealed with the key in use. Those that none of the keys opens stay as they are.
 * @param secrets with every key that may have sealed something
 */
export async function sealAllAnew(db: Db, secrets: Pick<Secrets, 'sealAnew'>): Promise<SealedAnew> {
  const sealed_anew: Record<string, number> = {};
  // Until a whole turn finds nothing: a value that changes while it is sealed anew is found by the next.
  for (;;) {
    const unreadable: Record<string, number> = {};
    const unreadable_rows: string[] = [];
    let left = 0;
    for (const column of Object.values(SEALED)) {
      const portion = await sealColumn(db, secrets, column);
      sealed_anew[column.table] = (sealed_anew[column.table] ?? 0) + portion.sealed;
      left += portion.found;
      if (portion.unreadable > 0) unreadable[column.table] = portion.unreadable;
      unreadable_rows.push(...portion.unreadableKeys.map((key) => `${column.table} ${key.join(' ')}`));
    }
    if (left === 0) return { sealed_anew, unreadable, unreadable_rows: unreadable_rows.slice(0, NAMED_MAX) };
  }
}
