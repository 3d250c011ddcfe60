import { expect, test } from 'vitest';
import { askPerson } from '../../cli/client/questions.js';
import { distance, fields, processTerminal, shortened, type Terminal, table } from '../../cli/client/terminal.js';
import type { InputRequest } from '../../contracts/api/messages.js';

const paint: Terminal['paint'] = (colour, text) => `<${colour}>${text}</>`;
const plain: Terminal['paint'] = (_colour, text) => text;

test('the columns of a table are as wide as their widest cell, and colours take no room', () => {
  const rows = [
    ['one', { text: 'up', colour: 'green' as const }, 'x'],
    ['longer', 'down', ''],
  ];
  expect(table({ paint: plain }, ['NAME', 'IS', 'MORE'], rows)).toBe(
    'NAME    IS    MORE\none     up    x\nlonger  down  ',
  );
  expect(table({ paint }, ['NAME', 'IS', 'MORE'], rows)).toContain('one     <green>up  </>  x');
});

test('fields without a value are left out', () => {
  expect(fields({ paint: plain }, { id: '1', nothing: undefined, empty: '', state: 'done' })).toBe(
    'id     1\nstate  done',
  );
});

test('what commands a terminal or turns the direction of a text is shown, wherever a text of others is printed', async () => {
  const hostile = '\x1b]52;c;eA==\x07\x9b2J\u202egnp';
  const shown = '[U+001B]]52;c;eA==[U+0007][U+009B]2J[U+202E]gnp';
  const { paint: painted } = processTerminal();
  expect(painted('red', hostile)).toContain(shown);
  expect(table({ paint: plain }, ['A', 'B'], [[hostile, { text: hostile, colour: 'red' }]])).toBe(
    `${'A'.padEnd(shown.length)}  B\n${shown}  ${shown}`,
  );
  expect(fields({ paint: plain }, { a: hostile, b: { text: hostile, colour: 'red' } })).toBe(
    `a  ${shown}\nb  ${shown}`,
  );
  const said: string[] = [];
  const ask = async (question: string) => {
    said.push(question);
    return null;
  };
  const terminal = { write: () => undefined, note: (text: string) => void said.push(text), paint: painted, ask };
  const form = { fields: [{ id: 'a', type: 'string', label: hostile, options: [hostile] }] };
  const asked = { title: hostile, prompt: `!${hostile}`, tool: hostile, arguments: { a: hostile }, source: hostile };
  await askPerson(terminal, { kind: 'form', ...form, ...asked } as unknown as InputRequest);
  for (const raw of ['\x1b]', '\x07', '\x9b', '\u202e']) expect(said.join('')).not.toContain(raw);
  expect(said.join('').split('[U+202E]')).toHaveLength(8);
});

test.each([
  [4_000, '4s'],
  [90_000, '1m'],
  [7_200_000, '2h'],
  [200_000_000, '2d'],
])('a time that is %i ms away is %s', (ms, text) => {
  expect(distance(new Date(ms).toISOString(), 0)).toBe(text);
});

test('a text is cut at its first line and at a number of characters', () => {
  expect(shortened('one\ntwo', 10)).toBe('one');
  expect(shortened('0123456789', 5)).toBe('0123…');
});

/** What is answered, by somebody who types these lines and then ends the input. */
function answer(request: Partial<InputRequest>, ...typed: string[]) {
  const lines = [...typed];
  const asked = { kind: 'form', source: 'agent', title: 'Where?', prompt: '', ...request } as InputRequest;
  const ask = async () => lines.shift() ?? null;
  return askPerson({ write: () => undefined, note: () => undefined, paint: plain, ask }, asked);
}

const NUMBER = { id: 'n', type: 'number' };
const TYPED = { n: { type: 'integer' }, ok: { type: 'boolean' }, tags: { type: 'array' }, more: { type: 'string' } };

test.each<[string, Partial<InputRequest>, string[], unknown]>([
  ['an approval takes yes or no, and asks until it has one of them', { kind: 'approval' }, ['perhaps', 'y'], 'yes'],
  ['a confirmation is refused', { kind: 'confirmation' }, ['no'], 'no'],
  ['the end of the input answers nothing', { kind: 'approval' }, [], null],
  ['a question without fields takes a text', {}, ['Berlin'], { text: 'Berlin' }],
  [
    'fields have the types of their schema, and empty ones are left out',
    { schema: { properties: TYPED } },
    ['7', 'yes', '["a"]', ''],
    { n: 7, ok: true, tags: ['a'] },
  ],
  [
    'an option is that value; what fits no type is left to the platform',
    { fields: [{ ...NUMBER, id: 'size', options: [1, 2] }, NUMBER] } as Partial<InputRequest>,
    ['2', 'many'],
    { size: 2, n: 'many' },
  ],
])('%s', async (_what, request, typed, expected) => {
  expect(await answer(request, ...typed)).toEqual(expected);
});
