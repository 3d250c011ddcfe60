import type { Tx } from './pool.js';

/** As `Tx.query`, with times as ISO 8601 text: rows as the API shows them. */
export async function queryJson<Row extends object>(
  tx: Tx,
  text: string,
  values: unknown[] = [],
  name?: string,
): Promise<Row[]> {
  const rows = await tx.query(text, values, name);
  const shown = (value: unknown) => (value instanceof Date ? value.toISOString() : value);
  return rows.map(
    (row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, shown(value)])) as Row,
  );
}

/**
 * Reads a page of a list as `queryJson` does; `count` is the number of rows on all pages.
 * @param list.from what follows FROM, with the WHERE clause
 */
export async function queryPage<Row extends object>(
  tx: Tx,
  list: { columns: string; from: string; orderBy: string },
  values: unknown[],
  { page, page_size }: { page: number; page_size: number },
): Promise<{ count: number; rows: Row[] }> {
  const [total] = await tx.query<{ count: number }>(`SELECT count(*) AS count FROM ${list.from}`, values);
  const limits = `LIMIT $${values.length + 1} OFFSET $${values.length + 2}`;
  const select = `SELECT ${list.columns} FROM ${list.from} ORDER BY ${list.orderBy} ${limits}`;
  const rows = await queryJson<Row>(tx, select, [...values, page_size, (page - 1) * page_size]);
  return { count: total?.count ?? 0, rows };
}
