import type { Tx } from '../../db/pool.js';

/** Of a value that is read as one row: the driver decodes a row at once, and more would hold up the event loop. */
const SLICE_BYTES = 1024 * 1024;

/**
 * Reads a value of bytes, which may be of many megabytes, in slices as rows of one statement.
 * @param column of `from`, which is the rest of a SELECT that finds one row
 * @returns undefined where there is no such row, or the value is NULL
 */
export async function readBytes(tx: Tx, column: string, from: string, values: unknown[]): Promise<Buffer | undefined> {
  const rows = await tx.query<{ slice: Buffer | null }>(
    `SELECT substring(${column} FROM slice_start FOR ${SLICE_BYTES}) AS slice
       FROM (SELECT ${column} FROM ${from}) AS found,
            generate_series(1, greatest(1, octet_length(${column})), ${SLICE_BYTES}) AS slice_start
      ORDER BY slice_start`,
    values,
  );
  const slices = rows.flatMap(({ slice }) => slice ?? []);
  return slices.length > 0 ? Buffer.concat(slices) : undefined;
}
