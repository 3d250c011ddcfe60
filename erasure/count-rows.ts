import type { Tx } from '../db/pool.js';

/** Runs a statement that removes rows. @returns the number of its rows */
export async function countRows(tx: Tx, statement: string, values: (string | string[])[]): Promise<number> {
  // The first part gives every parameter a type, whether the statement uses it or not.
  const given = values.map((value, index) => `$${index + 1}::${Array.isArray(value) ? 'text[]' : 'text'}`);
  const [row] = await tx.query<{ rows: number }>(
    `WITH given AS (SELECT ${given.join()}), gone AS (${statement} RETURNING 1) SELECT count(*) AS rows FROM gone`,
    values,
  );
  return Number(row?.rows ?? 0);
}
