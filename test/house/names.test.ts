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

/** Identifiers of a private language that the field has better ones for, in camel case; no name may contain one. */
const RETIRED = [
  ...['waker', 'turnstile', 'gatherer', 'letterbox', 'farewell', 'shortWay', 'longWay', 'goesOn', 'mayGoOut'],
  ...['neverOpened', 'layFoundation', 'tellAfresh', 'keptBeside', 'toolDoor', 'callsInHand', 'roomyAgent'],
  ...['callWaiting', 'takeBack', 'giveBack', 'carryOut', 'surroundings', 'bell', 'rung', 'hop', 'door', 'foundation'],
  ...['around', 'feed', 'told', 'heard', 'news', 'landed', 'patient', 'easy', 'its', 'abandon', 'conclusion'],
];
/** The SDK, the examples and the tools beside the platform have names of their own. */
const RETIRED_IN = /^(?!sdk|examples|bench|scripts|embedded).*\.(ts|mjs|sql)$/;
const NOT_NAMES = {
  ts: /\/\*[\s\S]*?\*\/|\/\/ .*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g,
  sql: /--.*/g,
};

/** The words of an identifier in small letters: `mayGoOut` and `may_go_out` are ` may go out `. */
const wordsOf = (identifier: string): string =>
  ` ${identifier
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()} `;

test('retired identifiers stay away', () => {
  const retired = RETIRED.map(wordsOf);
  const files = filesOf(RETIRED_IN).filter((path) => path !== join('test', 'house', 'names.test.ts'));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8').replace(NOT_NAMES[path.endsWith('.sql') ? 'sql' : 'ts'], '');
    const names = text.match(/[A-Za-z]\w*/g) ?? [];
    const bad = names.filter((name) => retired.some((word) => wordsOf(name).includes(word)));
    return [...new Set(bad)].map((name) => `${path}: ${name}`);
  });
  expect(found).toEqual([]);
});
