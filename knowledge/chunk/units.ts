import type { Block, Extracted } from '../parse/extracted.js';
import { headingText } from '../parse/markdown.js';
import { tokensOf } from './tokens.js';

/** The smallest stretch of the text that a chunk takes or leaves. */
export interface Unit {
  start: number;
  end: number;
  tokens: number;
  kind: Block['kind'];
  isFrontMatter: boolean;
  /** The headings that it stands under, the outermost first; itself included where it is one. Units of one section share the array. */
  headings: readonly string[];
}

/** A row of so many tokens is still kept whole, however small the chunks are. */
const ROW_TOKENS_MAX = 400;
/** Characters that are read at once to find the end of a sentence. */
const SENTENCE_CHARS_MAX = 2_000;
const SENTENCE_END = /[.!?。！？…]["')\]»”’]*\s+|\n+/g;
const HEADING_CHARS_MAX = 200;
const HEADINGS_MAX = 8;

/** Where a text may be cut so that no surrogate pair is divided: at or before `at`, and after `start`. */
function cutAt(text: string, start: number, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff && at - 1 > start ? at - 1 : at;
}

/** Divides a stretch at the ends of sentences; one that is too long at white space, or anywhere. */
function* sentences(text: string, start: number, end: number): Generator<[number, number]> {
  for (let at = start; at < end; ) {
    const limit = Math.min(end, at + SENTENCE_CHARS_MAX);
    const window = text.slice(at, limit);
    SENTENCE_END.lastIndex = 0;
    const found = SENTENCE_END.exec(window);
    let next = found ? at + found.index + found[0].length : limit;
    if (!found && limit < end) {
      const space = window.lastIndexOf(' ');
      next = space > SENTENCE_CHARS_MAX / 2 ? at + space + 1 : cutAt(text, at, limit);
    }
    yield [at, next];
    at = next;
  }
}

/** Divides a stretch until each part has at most so many tokens. */
function* fitting(text: string, start: number, end: number, maxTokens: number): Generator<[number, number, number]> {
  const stack: [number, number][] = [[start, end]];
  for (let part = stack.pop(); part; part = stack.pop()) {
    const [from, to] = part;
    const tokens = tokensOf(text.slice(from, to));
    if (tokens <= maxTokens || to - from < 2) {
      yield [from, to, tokens];
      continue;
    }
    const middle = Math.floor((from + to) / 2);
    // In this part alone: a text without a space would be searched to its beginning each time.
    const space = from + text.slice(from, middle + 1).lastIndexOf(' ');
    const cut = space > from + (to - from) / 4 ? space + 1 : cutAt(text, from, middle);
    if (cut <= from || cut >= to) yield [from, to, tokens];
    else stack.push([cut, to], [from, cut]);
  }
}

/** The headings that hold at a place, as they follow one another. */
class Headings {
  #open: { level: number; text: string }[] = [];
  path: readonly string[] = [];

  add(level: number, text: string): void {
    this.#open = this.#open.filter((heading) => heading.level < level).slice(0, HEADINGS_MAX - 1);
    this.#open.push({ level, text: text.slice(0, HEADING_CHARS_MAX).toWellFormed() });
    this.path = this.#open.map((heading) => heading.text);
  }
}

/**
 * The units of a document, in their order: sentences, rows, headings. Made one at a time, because a document may have millions.
 * @param maxTokens of a unit, except of a row, which may have more
 */
export function* unitsOf({ text, blocks }: Extracted, maxTokens: number): Generator<Unit> {
  const headings = new Headings();
  for (const { kind, start, end, level, isFrontMatter = false } of blocks) {
    if (kind === 'heading') headings.add(level ?? 1, headingText(text.slice(start, Math.min(end, start + 1_000))));
    const whole = kind === 'row' ? Math.max(maxTokens, ROW_TOKENS_MAX) : maxTokens;
    // A row of many characters has too many tokens in any case: counting them first would only take time.
    const isOne = kind !== 'text' && end - start <= SENTENCE_CHARS_MAX && tokensOf(text.slice(start, end)) <= whole;
    const parts: Iterable<[number, number]> = isOne ? [[start, end]] : sentences(text, start, end);
    for (const [from, to] of parts) {
      for (const [unitStart, unitEnd, tokens] of fitting(text, from, to, isOne ? whole : maxTokens)) {
        yield { start: unitStart, end: unitEnd, tokens, kind, isFrontMatter, headings: headings.path };
      }
    }
  }
}
