import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TITLE = /\b(?:test|it|describe)(?:\.\w+)?(?:\([^()]*\)|<[^()]*>)*\(\s*/.source;

/** What may give a commit another answer in another run of the gate, in code without its comments. */
const CHANCE: Record<string, (code: string) => boolean> = {
  'draws numbers without a seed': (code) => /\bMath\s*\.\s*random\b/.test(code),
  'measures the time that has passed': (code) => {
    const readings = [...code.matchAll(/(\w+) = (?:Date|performance)\.now\(\);/g)].map(([, name]) => name);
    const isMeasured = readings.some((name) => new RegExp(`\\.now\\(\\) - ${name}\\b`).test(code));
    return isMeasured && !code.includes('useFakeTimers'); // a clock that the test moves itself
  },
  'has a seed in a title': (code) =>
    new RegExp(`${TITLE}(\`[^\`]*\\$\\{[^}]*seed|['"\`][^'"\`]*(\\$|TEST_)seed)`, 'i').test(code),
};

/** What of that code does. */
const chances = (text: string): string[] => {
  const code = text.replace(/^\s*\/\*[\s\S]*?\*\/|\/\/ .*/gm, '');
  return Object.entries(CHANCE).flatMap(([what, does]) => (does(code) ? [what] : []));
};

test('the gate has one answer for a commit: no file of it draws without a seed, bounds real time or names a seed', () => {
  const root = join(import.meta.dirname, '..');
  const own = join('house', 'gate-rules.test.ts');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !path.startsWith('full') && path !== own,
  );
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((path) => chances(readFileSync(join(root, path), 'utf8')).map((what) => [path, what]));
  expect(found).toEqual([]);
});

test.each([
  ['const one = list[Math.floor(Math.random() * 3)];', ['draws numbers without a seed']],
  [
    'const from = performance.now();\nexpect(performance.now() - from).toBeLessThan(80);',
    ['measures the time that has passed'],
  ],
  ['vi.useFakeTimers();\nconst from = Date.now();\nexpect(Date.now() - from).toBe(5);', []],
  ['const yesterday = new Date(Date.now() - DAY_MS);', []],
  [`test(\`holds for \${seed}\`, () => {`, ['has a seed in a title']],
  ['test.each(SEEDS)(\n  "holds for $seed", () => {', ['has a seed in a title']],
  [`// TEST_SEED repeats it\ntest("holds", () => { throw new Error(\`of TEST_SEED=\${SEED}\`); });`, []],
])('%j: %j', (code, what) => {
  expect(chances(code)).toEqual(what);
});
