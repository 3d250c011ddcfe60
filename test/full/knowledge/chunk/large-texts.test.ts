import { expect, it } from 'vitest';
import { chunksOf } from '../../../../knowledge/chunk/chunks.js';
import { readMarkdown } from '../../../../knowledge/parse/markdown.js';

it.each([
  ['one line of ten million characters', 'x'.repeat(10_000_000)],
  ['ten million characters without a space in Chinese', '知识库'.repeat(1_100_000)],
  ['a hundred thousand headings', '# heading\n'.repeat(100_000)],
  ['millions of tiny sentences', 'a.\n'.repeat(1_000_000)],
])(
  'takes %s in bounded time',
  (_, text) => {
    let count = 0;
    let last = 0;
    for (const { char_end } of chunksOf(readMarkdown(text), { chunk_tokens: 200, chunk_overlap: 30 })) {
      count += 1;
      last = char_end;
    }
    expect(count).toBeGreaterThan(100);
    expect(last).toBe(text.trimEnd().length);
  },
  60_000,
);
