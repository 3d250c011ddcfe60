import { readdirSync, readFileSync } from 'node:fs';
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

/** Words of a private language that the field has better ones for; they may not come back. SQL follows with the baseline schema. */
const RETIRED = [
  'waker',
  'turnstile',
  'gatherer',
  'letterbox',
  'farewell',
  'shortWay',
  'longWay',
  'short_way',
  'long_way',
  'goesOn',
  'mayGoOut',
  'neverOpened',
  'layFoundation',
  'tellAfresh',
  'keptBeside',
  'toolDoor',
  'callsInHand',
  'roomyAgent',
  'callWaiting',
  'takeBack',
  'giveBack',
  'troubleOf',
  'troubleReporter',
  'tellingWhenLate',
  'untilToldToStop',
  'sayGoodbye',
  'isNobodyThere',
  'nobodyFor',
  'fastPathDoor',
  'patientSandbox',
  'patienceMs',
];

test('retired identifiers stay away', () => {
  const retired = new RegExp(RETIRED.join('|'), 'i');
  const folders = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_OURS.has(entry.name))
    .map((entry) => entry.name);
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((path) => join(folder, path))
      .filter((path) => /\.(ts|mjs)$/.test(path) && !path.split(sep).some((part) => NOT_OURS.has(part))),
  );
  const found = files
    .filter((path) => path !== join('test', 'house', 'names.test.ts'))
    .flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, index) => (retired.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
    );
  expect(found).toEqual([]);
});
