import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, test } from 'vitest';

interface AbsoluteLinks {
  absoluteLinks(document: string, from: { folder: string; url: string }): string;
}

const root = join(import.meta.dirname, '..', '..');
const SCRIPT = join(root, 'scripts', 'publish', 'absolute-links.mjs');
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
  const made = workflow.indexOf(`node scripts/publish/absolute-links.mjs ${folder} `);
  expect(made).toBeGreaterThan(0);
  expect(made).toBeLessThan(workflow.search(/run: npm publish|run: pipx/));
});

test('the page of the Python package links to the repository and to files that exist', () => {
  const workflow = read('.github/workflows/publish-python.yml');
  const [, step = ''] =
    /- name: PyPI links to this repository\n[\s\S]*?run: \|\n([\s\S]*?)\n {6}- /.exec(workflow) ?? [];
  const script = step.replace(/^ {10}/gm, '');
  const folder = mkdtempSync(join(inject('runDir'), 'python-urls-'));
  writeFileSync(join(folder, 'pyproject.toml'), read('python/pyproject.toml'));
  const env = { PATH: process.env.PATH, GITHUB_REPOSITORY: 'git/fleet', GITHUB_REF_NAME: 'v1' };
  execFileSync('bash', ['-e', '-c', script], { cwd: folder, env });
  const published = readFileSync(join(folder, 'pyproject.toml'), 'utf8');
  const urls = published.split('\n[project.urls]\n')[1] ?? '';
  const links = [...urls.matchAll(/^\w+ = "(https:\/\/github\.com\/git\/fleet.*)"$/gm)].map(([, link = '']) => link);
  expect(links).toHaveLength(4);
  const files = links.filter((link) => link.includes('/blob/v1/')).map((link) => link.split('/blob/v1/')[1] ?? '');
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  expect(files).toContain('python/CHANGELOG.md');
  expect(workflow.indexOf('[project.urls]')).toBeLessThan(workflow.indexOf('run: pipx'));
});

test('links with a scheme, anchors and code stay as they are, and a link to nothing is refused', () => {
  const from = { folder: 'sdk', url };
  const document = '[a](https://a.example) [b](#b) `[c](../c.md)` [d](../docs/api.md#send)\n```\n[e](../e.md)\n```\n';
  expect(absoluteLinks(document, from)).toBe(document.replace('../docs/api.md#send', `${url}/docs/api.md#send`));
  expect(() => absoluteLinks('[f](../docs/nowhere.md)', from)).toThrow('docs/nowhere.md');
});
