import { expect, test } from 'vitest';
import { embeddedText } from '../../../knowledge/embedder.js';

const words = (count: number, word: string) => Array.from({ length: count }, () => word).join(' ');

test.each<[string, string, string[], string]>([
  ['title and headings stand before the text', 'Guide', ['Sea', 'Seals'], 'Guide\nSea > Seals\nText.'],
  ['what is empty is left out', '', [], 'Text.'],
  ['a long title is cut at a word', words(50, 'title'), [], `${words(20, 'title')}\nText.`],
  [
    'the innermost headings stay where there is no room for all',
    'T',
    Array.from({ length: 8 }, (_, n) => `${n}${'x'.repeat(60)}`),
    `T\n5${'x'.repeat(60)} > 6${'x'.repeat(60)} > 7${'x'.repeat(60)}\nText.`,
  ],
  ['a long heading is cut', 'T', ['y'.repeat(200)], `T\n${'y'.repeat(100)}\nText.`],
])('%s', (_, title, path, expected) => {
  expect(embeddedText(title, path, 'Text.')).toBe(expected);
});
