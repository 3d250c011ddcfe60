import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DISPATCH_TRANSITIONS } from '../../messages/dispatch/dispatch-states.js';

const FUNCTIONS = new URL('../../db/functions/', import.meta.url);
const DOCUMENT = readFileSync(new URL('../../docs/durability.md', import.meta.url), 'utf8');
const sql = readdirSync(FUNCTIONS, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.sql'))
  .map((file) => readFileSync(new URL(file, FUNCTIONS), 'utf8'))
  .join('\n');

/** The table under the heading "A dispatch and its states": event, from, to, function. */
function documented(): string[][] {
  const section = DOCUMENT.split('## A dispatch and its states')[1]?.split('\n## ')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((line) =>
    line
      .split('|')
      .slice(1, 5)
      .map((cell) => cell.replaceAll('`', '').trim()),
  );
}

test('docs/durability.md shows the table of the code', () => {
  const table = DISPATCH_TRANSITIONS.map(({ event, from, to, sql }) => [event, from.join(', '), to, sql]);
  expect(documented()).toEqual(table);
});

test('each transition has its function, which is defined once', () => {
  for (const { sql: name } of DISPATCH_TRANSITIONS)
    expect([name, sql.split(`CREATE FUNCTION ${name}(`).length - 1]).toEqual([name, 1]);
});

test('no other statement writes the state of a dispatch', () => {
  const states = new Set(DISPATCH_TRANSITIONS.map(({ to }) => to));
  const written = [...sql.matchAll(/UPDATE dispatches \w SET state = '(\w+)'/g)].map(([, state]) => state);
  expect(written.length).toBeGreaterThan(0);
  for (const state of written) expect(states).toContain(state);
});
