import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { freshDatabase } from '../setup/database.js';

const SCRIPT = fileURLToPath(new URL('../../scripts/dump-schema.mjs', import.meta.url));
const COMMITTED = new URL('../../db/schema.sql', import.meta.url);

const database = await freshDatabase();

test('the migrations make what db/schema.sql says (refresh it with `npm run db:dump`)', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT, '--print'], {
    env: { ...process.env, DATABASE_URL: database.url },
  });
  expect(stdout).toBe(readFileSync(COMMITTED, 'utf8'));
});

test('the functions are read without scrolling: lines of at most 120 columns', () => {
  const folder = fileURLToPath(new URL('../../db/functions', import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.sql'));
  const lines = files.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
  expect(lines.length).toBeGreaterThan(1_000);
  expect(lines.filter((line) => line.length > 120)).toEqual([]);
});

test('every table with a tenant has forced row-level security', async () => {
  const open = await database.query(`
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND NOT (c.relrowsecurity AND c.relforcerowsecurity)`);
  expect(open).toEqual([]);
});

test('no role of the application reaches a partition past the policies of its table', async () => {
  const open = await database.query(`
    SELECT c.relname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
     WHERE c.relispartition AND c.relkind = 'r' AND r.rolname LIKE 'fleet%'`);
  expect(open).toEqual([]);
  const partitions = await database.query("SELECT 1 FROM pg_class WHERE relispartition AND relkind = 'r'");
  expect(partitions.length).toBeGreaterThan(0);
});
