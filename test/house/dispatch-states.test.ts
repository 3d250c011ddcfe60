import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DISPATCH_TRANSITIONS } from '../../messages/dispatch/dispatch-states.js';

const FUNCTIONS = new URL('../../db/functions/', import.meta.url);
const sql = readdirSync(FUNCTIONS, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.sql'))
  .map((file) => readFileSync(new URL(file, FUNCTIONS), 'utf8'))
  .join('\n');

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
