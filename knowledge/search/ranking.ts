import type { SearchMode } from '../../contracts/api/knowledge/knowledge-query.js';

/** What words add to the cosine at most. */
const COVERAGE_WEIGHT = 0.3;
/** BM25's usual constants: how soon repeated words stop to count, and how much long texts are held back. */
export const BM25_K1 = 1.2;
export const BM25_B = 0.75;

/** How a chunk fits a query, by each measure. */
export interface Fit {
  /** Undefined for a chunk without a vector of the present model. */
  cosine: number | undefined;
  /** Of BM25, 0 to 1: see `lexicalScore`. */
  lexical: number;
  /** The share of the query's words that the chunk has, each counted by its rarity; 0 to 1. */
  coverage: number;
}

/** How rare a term is: the logarithm of the share of the chunks that have it. Never negative. */
export function inverseFrequency(chunks: number, chunksWithTerm: number): number {
  return Math.log(1 + (chunks - chunksWithTerm + 0.5) / (chunksWithTerm + 0.5));
}

/**
 * BM25 as a share of the most that the query could reach, 0 to 1. The square root moves a chunk with one word in five to where the usual
 * `min_score` keeps it, and changes no order.
 */
export function lexicalScore(bm25: number, most: number): number {
  return most > 0 ? Math.sqrt(Math.min(1, bm25 / most)) : 0;
}

/**
 * The score of a chunk, at most 1 and below 0 where a cosine is; undefined for one that the mode does not find. In hybrid, words add at most 0.3 to the cosine, by the square of
 * their share, so that a single common word adds next to nothing. A chunk without a vector of the present model is scored by words there.
 */
export function scoreOf(mode: SearchMode, { cosine, lexical, coverage }: Fit): number | undefined {
  if (mode === 'semantic') return cosine;
  if (mode === 'lexical' || cosine === undefined) return lexical > 0 ? lexical : undefined;
  return Math.min(1, cosine + COVERAGE_WEIGHT * coverage ** 2);
}

/** Whether a score is at least what was asked for. Scores below 0 count as 0, which is how they are shown. */
export function isEnough(score: number, minScore: number): boolean {
  return Math.max(0, score) >= minScore;
}

/** The most that a chunk with this coverage scores in hybrid, given that its cosine is at most `cosineMax`. */
export function hybridBound(cosineMax: number, coverage: number): number {
  return Math.min(1, cosineMax + COVERAGE_WEIGHT * coverage ** 2);
}
