const COLUMNS_MAX = 20;
const ROWS_MAX = 200;
const CELL_MAX = 60;

/** A Markdown table of a list of objects, or of one object's members. Null where `value` is neither. */
export function jsonTable(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value))
    return table(
      ['key', 'value'],
      Object.entries(value).map(([key, each]) => [key, cell(each)]),
    );
  const rows = value.filter((row): row is Record<string, unknown> => typeof row === 'object' && row !== null);
  if (rows.length === 0) return null;
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, COLUMNS_MAX);
  return table(
    columns,
    rows.map((row) => columns.map((column) => cell(row[column]))),
  );
}

function table(columns: string[], rows: string[][]): string {
  const shown = rows.slice(0, ROWS_MAX);
  const lines = [columns.map(cell), columns.map(() => '---'), ...shown].map((cells) => `| ${cells.join(' | ')} |`);
  const left = rows.length - shown.length;
  return [...lines, ...(left > 0 ? [`(${left} more rows)`] : [])].join('\n');
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const line = text.replace(/\s+/g, ' ').replaceAll('|', '\\|');
  return line.length > CELL_MAX ? `${line.slice(0, CELL_MAX - 1)}…` : line;
}
