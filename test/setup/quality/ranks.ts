import type { SearchMode } from '../../../contracts/api/knowledge/knowledge-query.js';
import { type Embedder, embeddedText } from '../../../knowledge/embedder.js';
import type { KnowledgeSearch } from '../../../knowledge/search/search.js';
import type { FreshDatabase } from '../database.js';
import { ask, insertBase, insertSource } from '../knowledge-rows.js';
import { readPassages, readQueries } from './quality-set.js';

const QUALITY_NAMESPACE = 'quality';

/** Puts the committed passages on the record, each as a source of its own. */
export async function insertPassages(
  database: FreshDatabase,
  tenantId: string,
  embedder: Embedder | undefined,
): Promise<void> {
  await insertBase(database, tenantId, QUALITY_NAMESPACE);
  const passages = readPassages();
  const texts = passages.map(({ title, heading, text }) => embeddedText(title, [heading], text));
  const vectors = await embedder?.embed(texts, AbortSignal.timeout(120_000));
  for (const [index, { id, title, heading, text }] of passages.entries())
    await insertSource(database, {
      tenantId,
      namespace: QUALITY_NAMESPACE,
      sourceId: id,
      title,
      heading: [heading],
      texts: [text],
      model: embedder?.model ?? null,
      ...(vectors && { vectors: [vectors[index] as Float32Array] }),
    });
}

/** Where the passage of each committed query stands in the answer, from 1; 0 for not among the first ten. */
export async function ranksOf(
  search: KnowledgeSearch,
  tenantId: string,
  kind: 'paraphrase' | 'exact',
  mode: SearchMode,
): Promise<number[]> {
  const scope = { tenantId, namespaces: [QUALITY_NAMESPACE] };
  const ranks: number[] = [];
  for (const { query, expected } of readQueries(kind)) {
    const { results } = await ask(search, scope, query, { mode, topK: 10, minScore: 0.2 });
    ranks.push(results.findIndex(({ source_id }) => source_id === expected) + 1);
  }
  return ranks;
}
