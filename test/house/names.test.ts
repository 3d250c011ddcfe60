import { readdirSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const NOT_OURS = new Set(['node_modules', 'dist', 'dist.tmp', 'dist.old', 'coverage']);
/** Names that say nothing about what a file is for. */
const EMPTY_NAMES = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'misc', 'types']);

function sourceFiles(): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_OURS.has(entry.name))
    .flatMap((folder) => readdirSync(join(root, folder.name), { recursive: true, encoding: 'utf8' }))
    .filter((path) => /\.(ts|mjs|cjs)$/.test(path) && !path.split(sep).some((folder) => NOT_OURS.has(folder)));
}

test('source files are named after what they are for, in kebab case', () => {
  const badNames = sourceFiles().filter((path) => {
    const stem = basename(path).replace(/(\.test)?\.[a-z]+$/, '');
    return EMPTY_NAMES.has(stem) || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(stem);
  });
  expect(badNames).toEqual([]);
});
