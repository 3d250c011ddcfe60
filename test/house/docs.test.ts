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

/** States of messages as a file spells them. A set of those that are over has at least these two. */
const STATES = /'submitted'|'input-required'|'failed', 'canceled'/;
/** What names no states, or (see the page) with these words for something else as well. */
const ELSEWHERE =
  /^(bench|contracts|dist|docs|examples|mesh|node_modules|plans|python|scripts|sdk|test|workflows|console\/plans|db\/migrations)\/|^db\/schema\.sql/;
/** Here `submitted` is the answer to a form. */
const ANSWERS = [
  'api/approve/approve-routes.ts',
  'api/approve/page.ts',
  'console/inbox/words.ts',
  'db/functions/input/request_details.sql',
  'db/functions/input/tool_grants.sql',
  'messages/input/resolution.ts',
];

test('docs/internals.md lists every file that names states of messages', () => {
  const [, section = ''] = /^### Lists of states\n([\s\S]*?)^## /m.exec(read('docs/internals.md')) ?? [];
  const folders = readdirSync(root).filter((name) => /^[a-z]+$/.test(name) && !ELSEWHERE.test(`${name}/`));
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  );
  const naming = files.filter(
    (path) => /\.(ts|tsx|sql)$/.test(path) && !ELSEWHERE.test(path) && STATES.test(read(path)),
  );
  expect(naming.length).toBeGreaterThan(30);
  const unlisted = naming.filter((path) => !section.includes(`\`${path}\``));
  expect(unlisted.sort()).toEqual(ANSWERS);
});
