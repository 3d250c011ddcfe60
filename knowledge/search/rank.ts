import type { SearchMode } from '../../contracts/api/knowledge/knowledge-query.js';
import type { NamespaceIndex } from './namespace-index.js';
import { isEnough, scoreOf } from './ranking.js';
import type { Segment } from './segment.js';
import { TopList } from './top-list.js';
import { scanVectors } from './vector-scan.js';
import { scanWords, type WordFits } from './word-scan.js';

/** What one index is asked. */
export interface IndexQuery {
  /** Of the query: see `queryTerms`. */
  terms: readonly string[];
  /** The query's vector; undefined in lexical mode. */
  vector: Float32Array | undefined;
  mode: SearchMode;
  minScore: number;
  /** How many chunks to give at most. */
  limit: number;
  /** The sources that pass the filters; all without filters. */
  only?: ReadonlySet<string>;
}

/** A chunk that was found. */
export interface Candidate {
  sourceId: string;
  place: number;
  ordinal: number;
  score: number;
  semantic?: number;
  lexical?: number;
}

export interface Ranked {
  /** The best first. */
  candidates: Candidate[];
  /** Chunks that passed the filters and the least score. */
  total: number;
}

/** By which measures the chunks of an index fit, in the order of its segments; NaN: no cosine. */
export interface Fits {
  words: WordFits;
  cosines: Float32Array;
}

/** What is known of a chunk, by its place in the order of the segments. */
export function describeChunks(
  index: NamespaceIndex,
  segments: readonly Segment[],
  fits: Fits,
  found: { item: number; score: number }[],
): Candidate[] {
  const ends: number[] = [];
  for (const { count } of segments) ends.push((ends.at(-1) ?? 0) + count);
  return found.map(({ item, score }) => {
    const at = ends.findIndex((end) => item < end);
    const segment = segments[at] as Segment;
    const chunk = item - (ends[at - 1] ?? 0);
    const { sourceId, place } = index.source(segment.slots[chunk] as number);
    const cosine = fits.cosines[item] as number;
    const lexical = fits.words.lexical[item] as number;
    return {
      sourceId,
      place,
      ordinal: segment.ordinals[chunk] as number,
      score,
      ...(!Number.isNaN(cosine) && { semantic: cosine }),
      ...(lexical > 0 && { lexical }),
    };
  });
}

const NO_WORDS: readonly string[] = [];

/** The words of a query that count in its mode. */
export const termsFor = ({ mode, terms }: IndexQuery): readonly string[] => (mode === 'semantic' ? NO_WORDS : terms);

/** Finds the best chunks of an index by looking at all of them. */
export async function rankAll(index: NamespaceIndex, query: IndexQuery): Promise<Ranked> {
  // One view of the index for both scans: sources may come and go in their pauses.
  const { segments } = index;
  const considered = index.considered(query.only).slice();
  const words = await scanWords(index, segments, considered, termsFor(query));
  const cosines = query.vector
    ? await scanVectors(segments, considered, query.vector)
    : new Float32Array(words.lexical.length).fill(Number.NaN);
  const best = new TopList(query.limit);
  let total = 0;
  for (let item = 0; item < cosines.length; item++) {
    const cosine = cosines[item] as number;
    const score = scoreOf(query.mode, {
      cosine: Number.isNaN(cosine) ? undefined : cosine,
      lexical: words.lexical[item] as number,
      coverage: words.coverage[item] as number,
    });
    if (score === undefined || !isEnough(score, query.minScore)) continue;
    total += 1;
    best.add(item, score);
  }
  return { candidates: describeChunks(index, segments, { words, cosines }, best.sorted()), total };
}
