import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Chunk, type Chunking, chunksOf } from '../../../knowledge/chunk/chunks.js';
import { tokensOf } from '../../../knowledge/chunk/tokens.js';
import type { Extracted } from '../../../knowledge/parse/extracted.js';
import { readHtml } from '../../../knowledge/parse/html.js';
import { readMarkdown } from '../../../knowledge/parse/markdown.js';
import { readPlainText } from '../../../knowledge/parse/plain-text.js';

const CHUNKING: Chunking = { chunk_tokens: 40, chunk_overlap: 10 };
const cut = (extracted: Extracted, chunking = CHUNKING): Chunk[] => [...chunksOf(extracted, chunking)];

const word = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
  fc.constantFrom(...['# ', '## ', '\n', '\n\n', '| a | b |\n', '```\n', '- ', '. ']),
  fc.constantFrom(...['<b>', '<table><tr><td>', '</td></tr></table>', '<h2>', '\u0000', '\ud83d', '😀']),
  fc.string({ unit: 'binary', maxLength: 40 }),
);
const document = fc.array(word, { maxLength: 400 }).map((words) => words.join(' '));
const readers = fc.constantFrom(readPlainText, readMarkdown, readHtml);
const chunking = fc.record({
  chunk_tokens: fc.integer({ min: 32, max: 120 }),
  chunk_overlap: fc.integer({ min: 0, max: 31 }),
});

describe('chunks of any document', () => {
  it('are exactly what their offsets name, well-formed, and lose no word', () => {
    fc.assert(
      fc.property(document, readers, chunking, (content, read, how) => {
        const extracted = read(content);
        let reached = 0;
        for (const chunk of cut(extracted, how)) {
          expect(extracted.text.slice(chunk.char_start, chunk.char_end)).toBe(chunk.text);
          expect(chunk.text).toBe(chunk.text.trim());
          expect(chunk.text.isWellFormed()).toBe(true);
          expect(chunk.text).not.toContain('\u0000');
          expect(chunk.char_end).toBeGreaterThan(reached);
          // What lies between two chunks belongs to no block, such as white space.
          const between = extracted.blocks.some(({ start, end }) => {
            const gap = extracted.text.slice(Math.max(start, reached), Math.min(end, chunk.char_start));
            return Math.max(start, reached) < Math.min(end, chunk.char_start) && gap.trim() !== '';
          });
          expect(between).toBe(false);
          reached = chunk.char_end;
        }
        const rest = extracted.blocks
          .filter(({ end }) => end > reached)
          .map(({ start, end }) => extracted.text.slice(Math.max(start, reached), end));
        expect(rest.join('').trim()).toBe('');
      }),
      { numRuns: 300 },
    );
  });

  it('have about as many tokens as they should', () => {
    const text = Array.from({ length: 500 }, (_, at) => `Sentence number ${at} says a little about something.`).join(
      ' ',
    );
    for (const { tokens, text: words } of cut(readPlainText(text))) {
      expect(tokens).toBeLessThanOrEqual(CHUNKING.chunk_tokens);
      expect(Math.abs(tokensOf(words) - tokens)).toBeLessThan(8);
    }
  });
});

describe('the places where documents are cut', () => {
  it('repeats the last sentences of a section, no more than it should', () => {
    const text = Array.from({ length: 30 }, (_, at) => `This is number ${at}.`).join(' ');
    const [one, other] = cut(readPlainText(text)) as [Chunk, Chunk];
    const repeated = text.slice(other.char_start, one.char_end);
    expect(repeated).toMatch(/^This is number \d+\./);
    expect(tokensOf(repeated)).toBeLessThanOrEqual(CHUNKING.chunk_overlap);
  });

  it('knows the headings of a chunk; small sections share one under what they have in common', () => {
    const body = 'Some words that fill a section with enough text to stand alone in it. '.repeat(3);
    const chunks = cut(readMarkdown(`# Top\n\n## A\n\n${body}\n\n## B\n\nshort\n\n## C\n\nshort too\n`));
    expect(chunks.map(({ heading_path }) => heading_path)).toEqual(
      [['Top', 'A'], ['Top', 'A'], ['Top']].slice(-chunks.length),
    );
    expect(chunks.at(-1)?.text).toContain('short too');
  });

  it.each<[string, string, string[]]>([
    ['the headings above its text, in it too', '# Travel\n\n## Trains\n\nFirst class is paid.', ['Travel', 'Trains']],
    ['what its sections share', '# Travel\n\n## Trains\n\nOne.\n\n## Buses\n\nTwo.', ['Travel']],
    ['nothing below text that stands above', '# Travel\n\nIntro.\n\n## Trains\n\nOne.', ['Travel']],
    ['those of headings alone', '# Travel\n\n## Trains\n', ['Travel']],
    ['those behind front matter', '---\ntitle: T\n---\n# Travel\n\n## Trains\n\nOne.', ['Travel', 'Trains']],
  ])('has as its path %s', (_, text, path) => {
    expect(cut(readMarkdown(text), { chunk_tokens: 200, chunk_overlap: 30 })).toMatchObject([{ heading_path: path }]);
  });

  it('keeps rows whole that are longer than a chunk, and cuts those that are far too long', () => {
    const row = (words: number) => `| ${'cell '.repeat(words)}|`;
    const text = [row(5), row(60), row(5), row(3_000)].join('\n');
    const chunks = cut(readMarkdown(text));
    expect(chunks.some((chunk) => chunk.text === row(60))).toBe(true);
    expect(Math.max(...chunks.map(({ tokens }) => tokens))).toBeLessThan(450);
  });

  it('names the pages of a chunk', () => {
    const text = 'one one one.\n\ntwo two two.\n\nthree three.';
    const extracted = { ...readPlainText(text), pages: [0, 14, 28] };
    const [chunk] = cut(extracted) as [Chunk];
    expect([chunk.page_start, chunk.page_end]).toEqual([1, 3]);
  });
});
