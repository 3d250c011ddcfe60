import { expect, test } from 'vitest';
import { askPerson } from '../../cli/client/questions.js';
import { distance, fields, shortened, type Terminal, table } from '../../cli/client/terminal.js';
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

test.each<[string, Partial<InputRequest>, string[], unknown]>([
  ['an approval takes yes or no, and asks until it has one of them', { kind: 'approval' }, ['perhaps', 'y'], 'yes'],
  ['a confirmation is refused', { kind: 'confirmation' }, ['no'], 'no'],
  ['the end of the input answers nothing', { kind: 'approval' }, [], null],
  ['a question without fields takes a text', {}, ['Berlin'], { text: 'Berlin' }],
  [
    'fields have the types of their schema, and empty ones are left out',
    {
      schema: {
        properties: {
          n: { type: 'integer' },
          ok: { type: 'boolean' },
          tags: { type: 'array' },
          more: { type: 'string' },
        },
      },
    },
    ['7', 'yes', '["a"]', ''],
    { n: 7, ok: true, tags: ['a'] },
  ],
  [
    'an option is that value; what fits no type is left to the platform',
    {
      fields: [
        { id: 'size', type: 'number', options: [1, 2] },
        { id: 'n', type: 'number' },
      ],
    } as Partial<InputRequest>,
    ['2', 'many'],
    { size: 2, n: 'many' },
  ],
])('%s', async (_what, request, typed, expected) => {
  expect(await answer(request, ...typed)).toEqual(expected);
});
