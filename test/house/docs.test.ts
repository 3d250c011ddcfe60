import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { CLOSE_CODES, FRAME_ERROR_CODES, HTTP_ERRORS, RPC_ERRORS } from '../../contracts/errors.js';

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

/** The anchors that GitHub gives to the headings of a document. */
function anchorsOf(document: string): string[] {
  const headings = document.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

test('the documentation links to files and headings that exist', () => {
  const documents = [
    'README.md',
    'sdk/README.md',
    'python/README.md',
    ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
  ];
  const links = documents
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...read(path).matchAll(/\]\(([^)#:]*)(?:#([^)]*))?\)/g)].map(([link, file = '', anchor]) => ({
        link: `${path}: ${link}`,
        target: file === '' ? path : join(dirname(path), file),
        anchor,
      })),
    );
  expect(links.length).toBeGreaterThan(20);
  const broken = links.filter(({ target, anchor }) => {
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && !anchorsOf(read(target)).includes(anchor);
  });
  expect(broken.map(({ link }) => link)).toEqual([]);
});

test('docs/internals.md names files that exist', () => {
  const paths = [...read('docs/internals.md').matchAll(/`([\w./-]+(?:\.(?:ts|sql)|\/))`/g)].map(
    (match) => match[1] ?? '',
  );
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('docs/development.md says where to find files that exist', () => {
  const [, section = ''] = /^## Where to find things\n([\s\S]*?)^## /m.exec(read('docs/development.md')) ?? [];
  const paths = [...section.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

interface LayerRule {
  name: string;
  to: { pathNot: string[] };
}

test('docs/development.md says which folders a folder may import, as the check of the layers does', () => {
  const { forbidden } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs') as { forbidden: LayerRule[] };
  const layers = new Map(
    forbidden
      .filter(({ name }) => name.endsWith('-imports-only-its-layers'))
      .map(({ name, to }) => [name.split('-')[0] ?? '', to.pathNot[1]?.match(/\w+/g) ?? []]),
  );
  const listed = tableRows(read('docs/development.md'), 'Layout')
    .map(([folder = '', , allowed = '']) => ({
      folder: folder.replace(/\W/g, ''),
      allowed: allowed.split('; ')[0] ?? '',
    }))
    .filter(
      ({ folder, allowed }) => layers.has(folder) && /^\w+(, \w+)*$/.test(allowed) && !/^(zod|Temporal)/.test(allowed),
    );
  expect(listed.length).toBeGreaterThan(15);
  for (const { folder, allowed } of listed)
    expect({ folder, allowed: [folder, ...allowed.split(', ')] }).toEqual({ folder, allowed: layers.get(folder) });
});
