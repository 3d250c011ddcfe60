import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NamespaceIndex } from '../index/namespace-index.js';
import { countChunks, type Segment } from '../index/segment.js';
import { BM25_B, BM25_K1, inverseFrequency, lexicalScore } from './ranking.js';

/** Chunks that are looked at in one turn of the event loop: some two milliseconds. */
const CHUNKS_PER_TURN = 8_192;

/** How all chunks of an index fit the words of a query, in the order of its segments: 0 where no word fits. */
export interface WordFits {
  lexical: Float32Array;
  coverage: Float32Array;
}

/** A term of the query that a term of the index stands for. */
interface Match {
  term: number;
  similarity: number;
}

/** The terms of a query, found in the vocabulary of an index. */
interface PreparedTerms {
  /** For each term of the index: where its matches are in `matches`, plus one; 0 for none. */
  matchOf: Uint16Array;
  matches: Match[][];
  /** For each term of the query. */
  rarity: Float64Array;
  totalRarity: number;
}

async function prepare(index: NamespaceIndex, terms: readonly string[]): Promise<PreparedTerms> {
  const matchOf = new Uint16Array(index.vocabulary.size);
  const matches: Match[][] = [];
  const rarity = new Float64Array(terms.length);
  for (const [term, text] of terms.entries()) {
    await nextTurn(); // in a large vocabulary each term takes milliseconds, and a query may have hundreds
    const present = index.vocabulary.similar(text, (termId) => index.frequency(termId) > 0);
    const exact = present[0]?.similarity === 1;
    rarity[term] = inverseFrequency(index.chunks, index.frequency(present[0]?.termId ?? -1));
    for (const { termId, similarity } of present) {
      const weight = exact && similarity < 1 ? similarity / 2 : similarity; // a word that is there needs others less
      const known = matchOf[termId] as number;
      if (known > 0) matches[known - 1]?.push({ term, similarity: weight });
      else matchOf[termId] = matches.push([{ term, similarity: weight }]);
    }
  }
  return { matchOf, matches, rarity, totalRarity: rarity.reduce((sum, value) => sum + value, 0) };
}

/** Scores one chunk after the other; what it needs for that is allocated once. */
class WordScorer {
  readonly #best: Float64Array;
  readonly #share: Float64Array;
  readonly #touched: number[] = [];

  constructor(
    private readonly prepared: PreparedTerms,
    private readonly averageLength: number,
  ) {
    this.#best = new Float64Array(prepared.rarity.length);
    this.#share = new Float64Array(prepared.rarity.length);
  }

  /** Writes the fits of the chunk at `index` of the segment to `fits[at]`. */
  score(segment: Segment, index: number, fits: WordFits, at: number): void {
    const { matchOf, matches } = this.prepared;
    const { starts, termIds, frequencies, lengths } = segment;
    const end = starts[index + 1] as number;
    let norm = 0;
    for (let posting = starts[index] as number; posting < end; posting++) {
      const found = matchOf[termIds[posting] as number] as number;
      if (found === 0) continue;
      if (norm === 0) norm = BM25_K1 * (1 - BM25_B + (BM25_B * (lengths[index] as number)) / this.averageLength);
      const frequency = frequencies[posting] as number;
      const weight = (frequency * (BM25_K1 + 1)) / (frequency + norm);
      for (const { term, similarity } of matches[found - 1] as Match[])
        this.#note(term, weight * similarity, similarity);
    }
    if (norm > 0) this.#finish(fits, at);
  }

  #note(term: number, weight: number, similarity: number): void {
    if (this.#share[term] === 0) this.#touched.push(term);
    this.#best[term] = Math.max(this.#best[term] as number, weight);
    this.#share[term] = Math.max(this.#share[term] as number, similarity);
  }

  #finish(fits: WordFits, at: number): void {
    const { rarity, totalRarity } = this.prepared;
    let bm25 = 0;
    let covered = 0;
    for (const term of this.#touched) {
      bm25 += (rarity[term] as number) * (this.#best[term] as number);
      covered += (rarity[term] as number) * (this.#share[term] as number);
      this.#best[term] = 0;
      this.#share[term] = 0;
    }
    this.#touched.length = 0;
    fits.lexical[at] = lexicalScore(bm25, totalRarity * (BM25_K1 + 1));
    fits.coverage[at] = totalRarity > 0 ? covered / totalRarity : 0;
  }
}

/**
 * Compares the words of a query with all chunks of an index. Gives other work its turn in between; the index may change then, the segments do
 * not.
 * @param considered by source: see `NamespaceIndex.considered`
 */
export async function scanWords(
  index: NamespaceIndex,
  segments: readonly Segment[],
  considered: Uint8Array,
  terms: readonly string[],
): Promise<WordFits> {
  const count = countChunks(segments);
  const fits = { lexical: new Float32Array(count), coverage: new Float32Array(count) };
  const prepared = await prepare(index, terms);
  if (prepared.matches.length === 0) return fits;
  const scorer = new WordScorer(prepared, index.averageLength);
  let at = 0;
  for (const segment of segments)
    for (let chunk = 0; chunk < segment.count; chunk++, at++) {
      if (considered[segment.slots[chunk] as number]) scorer.score(segment, chunk, fits, at);
      if (at % CHUNKS_PER_TURN === CHUNKS_PER_TURN - 1) await nextTurn();
    }
  return fits;
}
