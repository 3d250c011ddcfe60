/** How well the committed queries find their passages, by mode: with the model, and by words alone. */

import { embeddedText, searchedText } from '../../dist/knowledge/embedder.js';
import { NamespaceIndex } from '../../dist/knowledge/search/index/namespace-index.js';
import { queryTerms, termsOf } from '../../dist/knowledge/search/index/terms.js';
import { rankAll } from '../../dist/knowledge/search/rank/rank.js';
import { quality, readPassages, readQueries } from './quality-set.mjs';

const MIN_SCORE = 0.2;
const LIMIT = 50;

/** @param embedder undefined: words alone */
export async function measureRetrieval(embedder) {
  const signal = AbortSignal.timeout(300_000);
  const passages = readPassages();
  const texts = passages.map(({ title, heading, text }) => embeddedText(title, [heading], text));
  const vectors = await embedder?.embed(texts, signal);
  const index = new NamespaceIndex(embedder?.dimensions ?? 0, true);
  index.add(
    passages.map(({ id, title, heading, text }, at) => ({
      source: { sourceId: id, version: 1, model: embedder?.model ?? null },
      chunks: [{ ordinal: 0, terms: termsOf(searchedText(title, [heading], text)), vector: vectors?.[at] }],
    })),
  );
  const rows = [];
  for (const kind of ['paraphrase', 'exact']) {
    const queries = readQueries(kind);
    const asked = await embedder?.embed(
      queries.map(({ query }) => query),
      signal,
    );
    for (const mode of embedder ? ['hybrid', 'semantic', 'lexical'] : ['lexical']) {
      const ranks = [];
      for (const [at, { query, expected }] of queries.entries()) {
        const vector = mode === 'lexical' ? undefined : asked[at];
        const request = { terms: queryTerms(query), vector, mode, minScore: MIN_SCORE, limit: LIMIT };
        const { candidates } = await rankAll(index, request);
        ranks.push(candidates.findIndex(({ sourceId }) => sourceId === expected) + 1);
      }
      rows.push({ kind, mode, queries: queries.length, ...quality(ranks) });
    }
  }
  return rows;
}
