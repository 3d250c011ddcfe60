import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

interface AbsoluteLinks {
  absoluteLinks(document: string, from: { folder: string; url: string }): string;
}

const root = join(import.meta.dirname, '..', '..');
const SCRIPT = join(root, 'scripts', 'absolute-links.mjs');
const { absoluteLinks } = (await import(pathToFileURL(SCRIPT).href)) as AbsoluteLinks;
const url = 'https://git.example/fleet/blob/v1';
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

test.each(['sdk', 'python'])(
  'the README of the package in %s/ has only absolute links where it is published',
  (folder) => {
    const published = absoluteLinks(read(`${folder}/README.md`), { folder, url });
    const targets = [...published.matchAll(/\]\(([^)]*)\)/g)].map(([, target = '']) => target);
    expect(targets.length).toBeGreaterThan(0);
    expect(targets.filter((target) => !/^(https:\/\/|#)/.test(target))).toEqual([]);
    const files = targets.filter((target) => target.startsWith(url)).map((target) => target.slice(url.length + 1));
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => !existsSync(join(root, file.split('#', 1)[0] ?? '')))).toEqual([]);
  },
);

test.each(['sdk', 'python'])('the package in %s/ is published with these links', (folder) => {
  const workflow = read(`.github/workflows/publish-${folder}.yml`);
  const made = workflow.indexOf(`node scripts/absolute-links.mjs ${folder} `);
  expect(made).toBeGreaterThan(0);
  expect(made).toBeLessThan(workflow.search(/run: npm publish|run: pipx/));
});

test('links with a scheme, anchors and code stay as they are, and a link to nothing is refused', () => {
  const from = { folder: 'sdk', url };
  const document = '[a](https://a.example) [b](#b) `[c](../c.md)` [d](../docs/api.md#send)\n```\n[e](../e.md)\n```\n';
  expect(absoluteLinks(document, from)).toBe(document.replace('../docs/api.md#send', `${url}/docs/api.md#send`));
  expect(() => absoluteLinks('[f](../docs/nowhere.md)', from)).toThrow('docs/nowhere.md');
});
