import type { Tx } from './pool.js';

/** As `Tx.query`, with times as ISO 8601 text: rows as the API shows them. */
export async function queryJson<Row extends object>(tx: Tx, text: string, values: unknown[] = []): Promise<Row[]> {
  const rows = await tx.query(text, values);
  const shown = (value: unknown) => (value instanceof Date ? value.toISOString() : value);
  return rows.map(
    (row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, shown(value)])) as Row,
  );
}
