import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

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

test.each(['docs/internals.md', 'docs/domains.md'])('%s names files that exist', (page) => {
  const paths = [...read(page).matchAll(/`([\w./-]+(?:\.(?:ts|sql)|\/))`/g)].map((match) => match[1] ?? '');
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('docs/development.md says where to find files that exist', () => {
  const [, section = ''] = /^## Where to find things\n([\s\S]*?)^## /m.exec(read('docs/development.md')) ?? [];
  const paths = [...section.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
