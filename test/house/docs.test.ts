import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { CLOSE_CODES, FRAME_ERROR_CODES, HTTP_ERRORS, RPC_ERRORS } from '../../contracts/errors.js';
import { OPERATIONS } from '../../contracts/operations.js';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Rows of the tables below a heading of the second level, each as its cells. */
function tableRows(document: string, heading: string): string[][] {
  const section = document.split(/^## /m).find((part) => part.startsWith(heading)) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|') && !line.startsWith('| ---'));
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const errors = read('docs/errors.md');

test('docs/errors.md lists every HTTP code with its status', () => {
  const listed = tableRows(errors, 'HTTP').map(([status, code]) => `${status} ${code}`);
  const wanted = Object.entries(HTTP_ERRORS).map(([code, status]) => `${status} \`${code}\``);
  expect(listed.filter((row) => row !== 'status code').sort()).toEqual(wanted.sort());
});

test('docs/errors.md lists every JSON-RPC error with its number', () => {
  const listed = tableRows(errors, 'JSON-RPC').slice(1);
  const wanted = Object.entries(RPC_ERRORS).map(([name, number]) => [String(number), `\`${name}\``]);
  expect(listed.map((cells) => cells.slice(0, 2)).sort()).toEqual(wanted.sort());
});

test('docs/errors.md lists every frame error, and names every close code', () => {
  const listed = tableRows(errors, 'WebSocket').slice(1);
  expect(listed.map(([code]) => code).sort()).toEqual(FRAME_ERROR_CODES.map((code) => `\`${code}\``).sort());
  const closing = Object.fromEntries(listed.map(([code = '', closes]) => [code.replaceAll('`', ''), closes]));
  for (const [name, number] of Object.entries(CLOSE_CODES)) {
    if (name in closing) expect(closing[name], name).toBe(String(number));
    else expect(errors, name).toContain(String(number));
  }
});

test('docs/api.md has every path of the interface, and no other', () => {
  const headings = [...read('docs/api.md').matchAll(/^### `(?:GET|POST) (\/\S+)`/gm)].map((match) => match[1]);
  expect(headings.sort()).toEqual(
    Object.values(OPERATIONS)
      .map(({ path }) => path)
      .sort(),
  );
});

test('the documentation links to files that exist', () => {
  const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)];
  const targets = documents
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...read(path).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map((match) => join(dirname(path), match[1] ?? '')),
    );
  expect(targets.length).toBeGreaterThan(20);
  expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([]);
});
