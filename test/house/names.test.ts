import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const NOT_OURS = new Set(['node_modules', 'dist', 'dist.tmp', 'dist.old', 'coverage']);
/** Names that say nothing about what a file is for. */
const EMPTY_NAMES = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'misc', 'types']);

/** Paths of the project's own files of these kinds, relative to the root. */
function filesOf(kinds: RegExp): string[] {
  const paths = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_OURS.has(entry.name))
    .flatMap(({ name }) =>
      readdirSync(join(root, name), { recursive: true, encoding: 'utf8' }).map((path) => join(name, path)),
    );
  return paths.filter((path) => kinds.test(path) && !path.split(sep).some((part) => NOT_OURS.has(part)));
}

test('source files are named after what they are for, in kebab case', () => {
  const files = filesOf(/\.(ts|mjs|cjs)$/);
  expect(files.length).toBeGreaterThan(300);
  const badNames = files.filter((path) => {
    const stem = basename(path).replace(/(\.test)?\.[a-z]+$/, '');
    return EMPTY_NAMES.has(stem) || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(stem);
  });
  expect(badNames).toEqual([]);
});

/** Words of a private language that the field has better ones for, in camel or snake case; no text may contain one. */
const RETIRED =
  `waker turnstile gatherer letterbox farewell shortWay longWay goesOn mayGoOut neverOpened layFoundation tellAfresh keptBeside toolDoor
  callsInHand roomyAgent callWaiting takeBack giveBack carryOut troubleOf troubleReporter tellingWhenLate untilToldToStop sayGoodbye
  isNobodyThere nobodyFor fastPathDoor patientSandbox patienceMs`.split(/\s+/);
/** Plain words that say nothing in a name of the platform or its tests. */
const NOT_IN_NAMES =
  'abandon around bell conclusion door easy foundation heard hop its landed news patient rung surroundings told'.split(
    ' ',
  );
/** The SDK, the examples and the tools beside the platform have names of their own. */
const NAMED_FREELY = /^(sdk|examples|bench|scripts|embedded)\b/;
const NOT_NAMES = {
  ts: /\/\*[\s\S]*?\*\/|\/\/ .*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g,
  sql: /--.*/g,
};

const inSnakeCase = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
const RETIRED_SPELLED = RETIRED.map(inSnakeCase);

/** The lines of a text with retired words, and its names with plain ones. */
function badWords(path: string, text: string): string[] {
  const lines = text.split('\n').filter((line) => {
    const spelled = inSnakeCase(line);
    return RETIRED_SPELLED.some((word) => spelled.includes(word));
  });
  if (NAMED_FREELY.test(path)) return lines;
  const names = text.replace(NOT_NAMES[path.endsWith('.sql') ? 'sql' : 'ts'], '').match(/[A-Za-z]\w*/g) ?? [];
  const bad = names.filter((name) =>
    inSnakeCase(name)
      .split('_')
      .some((word) => NOT_IN_NAMES.includes(word)),
  );
  return [...lines, ...new Set(bad)];
}

test('retired identifiers stay away', () => {
  const files = filesOf(/\.(ts|mjs|sql)$/).filter((path) => path !== join('test', 'house', 'names.test.ts'));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((path) =>
    badWords(path, readFileSync(join(root, path), 'utf8')).map((word) => `${path}: ${word.trim()}`),
  );
  expect(found).toEqual([]);
});
