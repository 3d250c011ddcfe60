import { parse } from 'csv-parse/sync';
import { PARSE_BOUNDS, tooMuchText } from './bounds.js';
import { cleaned, type Extracted, TextBuilder } from './extracted.js';
import { ParseError } from './parse-error.js';

const RECORD_CHARS_MAX = 256 * 1024;
const SAMPLE_CHARS = 64 * 1024;

/** The delimiter that occurs most in the first lines. */
function delimiterOf(text: string): string {
  const sample = text.slice(0, SAMPLE_CHARS);
  const counted = [',', ';', '\t', '|'].map((delimiter) => ({ delimiter, count: sample.split(delimiter).length }));
  return counted.reduce((most, one) => (one.count > most.count ? one : most)).delimiter;
}

/**
 * A table in CSV. Each record becomes a line of `column: value` pairs, so that a row says by itself what it means; its first record names the
 * columns.
 */
export function readCsv(content: string): Extracted {
  const text = cleaned(content);
  let records: string[][];
  try {
    records = parse(text, {
      delimiter: delimiterOf(text),
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      max_record_size: RECORD_CHARS_MAX,
    });
  } catch (error) {
    throw new ParseError('DAMAGED', `The CSV cannot be read: ${(error as Error).message.slice(0, 200)}`);
  }
  const [columns = [], ...rows] = records;
  const builder = new TextBuilder(PARSE_BOUNDS.textChars, tooMuchText);
  if (rows.length === 0) builder.add('row', columns.join(' | '));
  for (const row of rows) builder.add('row', recordLine(columns, row));
  return builder.build();
}

/** `column: value; column: value`, without empty values. */
export function recordLine(columns: readonly string[], values: readonly string[]): string {
  const shown = values.map((value, place) => {
    const column = columns[place]?.trim();
    const flat = value.replace(/\s+/g, ' ').trim();
    if (flat === '') return '';
    return column ? `${column}: ${flat}` : flat;
  });
  return shown.filter((pair) => pair !== '').join('; ');
}
