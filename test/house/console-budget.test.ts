import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

/** What a browser loads, compressed, in kilobytes: before the first view, and for all views together. */
const [FIRST_KB, ALL_KB] = [150, 450];

const folder = join(import.meta.dirname, '..', '..', 'dist', 'console');
const kilobytes = (names: string[]) =>
  names.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, 'assets', name))).length, 0) / 1_000;

test('the JavaScript of the console stays small', () => {
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  const first = [...page.matchAll(/assets\/([\w.-]+\.js)/g)].flatMap(([, name]) => name ?? []);
  const all = readdirSync(join(folder, 'assets')).filter((name) => name.endsWith('.js'));
  expect(first.length).toBeGreaterThan(0);
  expect(kilobytes(first)).toBeLessThanOrEqual(FIRST_KB);
  expect(kilobytes(all)).toBeLessThanOrEqual(ALL_KB);
});
