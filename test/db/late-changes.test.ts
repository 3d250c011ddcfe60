import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { idBound } from '../../runtime/ids.js';
import { freshDatabase } from '../setup/database.js';

const FUNCTIONS = join(import.meta.dirname, '..', '..', 'db', 'functions');
const CHANGES = /updated_at = now\(\)|INSERT INTO messages\b/g;
const NOTES = /PERFORM note_change\(/g;

const files = readdirSync(FUNCTIONS, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.sql'))
  .map((name) => [name, readFileSync(join(FUNCTIONS, name), 'utf8')] as const);

test.each(files.filter(([, text]) => text.search(CHANGES) >= 0))('%s notes each change of a message', (_name, text) => {
  expect(text.match(NOTES)).toHaveLength(text.match(CHANGES)?.length ?? 0);
});

test('a change is late at the same time for the database and for who reads', async () => {
  const database = await freshDatabase();
  for (const at of ['2026-11-22T10:00:00.000Z', '2026-11-22T10:00:00.001Z', '2031-01-01T23:59:59.999Z']) {
    const bound = await database.value('SELECT late_bound($1)', [at]);
    expect(bound).toBe(idBound('msg', Date.parse(at) - 5_000));
  }
});
