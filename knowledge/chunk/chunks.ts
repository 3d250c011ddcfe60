import type { Extracted } from '../parse/extracted.js';
import { type Unit, unitsOf } from './units.js';

/** How a text is cut. */
export interface Chunking {
  chunk_tokens: number;
  chunk_overlap: number;
}

/** A stretch of the text that is found and cited as one. `text` is `extracted.text.slice(char_start, char_end)`. */
export interface Chunk {
  text: string;
  char_start: number;
  char_end: number;
  page_start: number | null;
  page_end: number | null;
  heading_path: string[];
  tokens: number;
}

/** A heading begins a chunk of its own unless the chunk before has less than this share of its tokens. */
const SMALL_SHARE = 0.25;

function commonPath(one: readonly string[], other: readonly string[]): readonly string[] {
  if (one === other) return one;
  const differs = one.findIndex((heading, place) => other[place] !== heading);
  return differs < 0 ? one : one.slice(0, differs);
}

/** The headings that hold for what a chunk says: those that its text and rows share; where it has headings alone, those that these share. */
function headingPathOf(units: readonly Unit[]): readonly string[] {
  const content = units.filter(({ kind, isFrontMatter }) => kind !== 'heading' && !isFrontMatter);
  return (content.length > 0 ? content : units).map(({ headings }) => headings).reduce(commonPath);
}

/** The number of the page that a place is on, from 1. Places are asked for in rising order, so each page is passed once. */
class Pages {
  #at = 0;

  constructor(private readonly starts: readonly number[]) {}

  of(place: number): number | null {
    if (this.starts.length === 0) return null;
    // Overlap goes back a little.
    while (this.#at > 0 && (this.starts[this.#at] ?? 0) > place) this.#at -= 1;
    while (this.#at + 1 < this.starts.length && (this.starts[this.#at + 1] ?? 0) <= place) this.#at += 1;
    return this.#at + 1;
  }
}

/** The last units of a chunk, for the next to repeat: sentences of the same section, no more than so many tokens. */
function overlapOf(units: readonly Unit[], next: Unit, maxTokens: number): Unit[] {
  const repeated: Unit[] = [];
  let tokens = next.tokens;
  for (let place = units.length - 1; place > 0; place -= 1) {
    const unit = units[place] as Unit;
    tokens += unit.tokens;
    if (unit.kind !== 'text' || next.kind !== 'text' || unit.headings !== next.headings) break;
    if (tokens - next.tokens > maxTokens) break;
    repeated.unshift(unit);
  }
  return repeated;
}

/** Takes units until a chunk is full. */
class Packer {
  #units: Unit[] = [];
  #tokens = 0;
  /** Units of the open chunk that the one before does not have. */
  #fresh = 0;

  constructor(private readonly chunking: Chunking) {}

  /** @returns the chunk that is full, if this unit does not fit into it */
  add(unit: Unit): Unit[] | undefined {
    const { chunk_tokens, chunk_overlap } = this.chunking;
    const isFull = this.#fresh > 0 && this.#tokens + unit.tokens > chunk_tokens;
    const newSection = unit.kind === 'heading' && this.#tokens >= chunk_tokens * SMALL_SHARE;
    const done = isFull || newSection ? this.#units : undefined;
    if (done) {
      const room = Math.min(chunk_overlap, Math.max(0, chunk_tokens - unit.tokens));
      this.#begin(overlapOf(done, unit, room));
    }
    this.#units.push(unit);
    this.#tokens += unit.tokens;
    this.#fresh += 1;
    return done;
  }

  /** The last chunk. */
  end(): Unit[] {
    return this.#fresh > 0 ? this.#units : [];
  }

  #begin(units: Unit[]): void {
    this.#units = units;
    this.#tokens = units.reduce((sum, { tokens }) => sum + tokens, 0);
    this.#fresh = 0;
  }
}

/** Cuts a document into chunks with exact offsets. Made one at a time. */
export function* chunksOf(extracted: Extracted, chunking: Chunking): Generator<Chunk> {
  const pages = new Pages(extracted.pages);
  const packer = new Packer(chunking);
  for (const unit of unitsOf(extracted, chunking.chunk_tokens)) {
    const full = packer.add(unit);
    if (full) yield* chunkOf(extracted, full, pages);
  }
  yield* chunkOf(extracted, packer.end(), pages);
}

function* chunkOf({ text }: Extracted, units: readonly Unit[], pages: Pages): Generator<Chunk> {
  const [first] = units;
  const last = units.at(-1);
  if (!first || !last) return;
  const whole = text.slice(first.start, last.end);
  const char_start = first.start + whole.length - whole.trimStart().length;
  const char_end = last.end - (whole.length - whole.trimEnd().length);
  if (char_end <= char_start) return;
  yield {
    text: text.slice(char_start, char_end),
    char_start,
    char_end,
    page_start: pages.of(char_start),
    page_end: pages.of(char_end - 1),
    heading_path: [...headingPathOf(units)],
    tokens: units.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}
