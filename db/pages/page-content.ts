import { LIMITS } from '../../contracts/limits.js';

/** Content of which Postgres knows the stored size without reading it, at most: more than fits beside the other columns of a row. */
const MEASURED_BYTES = 8_192;

/** A table whose rows hold content that can be large. */
export interface ContentTable {
  name: string;
  key: string;
  /** The columns to read besides the content. */
  columns: string;
  /** The jsonb columns of content, each with what is read in its place where the page has no room for it. */
  content: Record<string, string>;
}

/**
 * The statement that reads the rows of a page with as much of their content as a page may hold (`LIMITS.pageContentBytes`). Its parameters
 * are the tenant and the keys in their order; it gives `columns`, the content and `whole`.
 *
 * In the order of the keys, a row is whole while there is room, and so are the first row and every small one. The others come without
 * their content, which the database does not send. What is stored in more bytes than there is room for is not even unpacked to be measured.
 */
export function readContent({ name, key, columns, content }: ContentTable): string {
  const names = Object.keys(content);
  const sum = (size: (column: string) => string) => names.map((column) => `coalesce(${size(column)}, 0)`).join(' + ');
  const shown = Object.entries(content).map(
    ([column, empty]) => `CASE WHEN whole THEN ${column} ELSE ${empty} END AS ${column}`,
  );
  const room = LIMITS.pageContentBytes;
  return `
    SELECT ${columns}, whole, ${shown.join(', ')}
      FROM (SELECT measured.*, place = 1 OR bytes <= ${LIMITS.smallContentBytes} OR sum(bytes) OVER (ORDER BY place) <= ${room} AS whole
        FROM (SELECT stored.*, CASE WHEN stored_until <= ${room} OR stored_bytes <= ${MEASURED_BYTES}
                 THEN ${sum((column) => `octet_length(${column}::text)`)} ELSE greatest(stored_bytes, ${MEASURED_BYTES}) END AS bytes
          FROM (SELECT sized.*, sum(stored_bytes) OVER (ORDER BY place) AS stored_until
            FROM (SELECT t.*, array_position($2::text[], t.${key}::text) AS place, ${sum((column) => `pg_column_size(${column})`)} AS stored_bytes
              FROM ${name} t WHERE t.tenant_id = $1 AND t.${key} = ANY ($2)) AS sized) AS stored) AS measured) AS shown
     ORDER BY place`;
}
