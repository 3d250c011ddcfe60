import { expect, test } from 'vitest';
import { answer } from '../../examples/librarian/answer.js';

const text = (parts: ReturnType<typeof answer>) =>
  parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
const ask = (content: string) => text(answer([{ kind: 'text', text: content }]));

test('makes a table of JSON', () => {
  expect(ask('table: [{"name":"Ann","age":3},{"name":"B|b"}]')).toBe(
    '| name | age |\n| --- | --- |\n| Ann | 3 |\n| B\\|b |  |',
  );
  expect(text(answer([{ kind: 'data', data: { a: [1, 2] } }]))).toBe('| key | value |\n| --- | --- |\n| a | [1,2] |');
  expect(ask('table: hello')).toBe('That is not JSON that I can read.');
});

test('sums up by the sentences that hold the frequent words', () => {
  const story =
    'Whales are large animals. The weather was fine. Whales sing songs, and whales live in the sea. I had tea. Lunch came. It rained.';
  expect(ask(`summarize: ${story}`)).toContain('Whales sing songs, and whales live in the sea.');
  expect(ask(`keywords: ${story}`)).toMatch(/^Keywords: whales \(3\)/);
});

test('explains itself', () => {
  expect(ask('hello')).toContain("I am the fleet's librarian");
});
