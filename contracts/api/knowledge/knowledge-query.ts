import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AnyId, JsonObject, Metadata, ok } from '../../primitives.js';

const NAMESPACE = '[a-z0-9][a-z0-9._-]{0,62}';
export const Namespace = z.string().regex(new RegExp(`^${NAMESPACE}$`), `must match ${NAMESPACE}`);

/** The ways to search: by meaning and words together, by meaning alone, by words alone. */
export const SearchMode = z.enum(['hybrid', 'semantic', 'lexical']);
export type SearchMode = z.infer<typeof SearchMode>;

/** Without control characters, which Postgres or a terminal would not show. */
export const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not have control characters');

export const Tag = line(64);
export const topK = z.int().min(1).max(LIMITS.knowledgeResultsMax);
export const minScore = z.number().min(0).max(1);

/** Which chunks a query considers; all given members must hold. */
export const SearchFilters = z.strictObject({
  tags_any: z.array(Tag).min(1).max(LIMITS.knowledgeTags).optional(),
  tags_all: z.array(Tag).min(1).max(LIMITS.knowledgeTags).optional(),
  source_ids: z.array(AnyId).min(1).max(100).optional(),
  /** Members that the source's metadata must have, with equal values (jsonb containment). */
  metadata: Metadata.optional(),
});
export type SearchFilters = z.infer<typeof SearchFilters>;

export const QueryRequest = z.strictObject({
  namespace: Namespace.optional(),
  namespaces: z.array(Namespace).min(1).max(LIMITS.knowledgeNamespacesPerQuery).optional(),
  query: z.string().min(1).max(LIMITS.knowledgeQueryChars),
  top_k: topK.optional(),
  min_score: minScore.optional(),
  mode: SearchMode.optional(),
  filters: SearchFilters.optional(),
});
export type QueryRequest = z.infer<typeof QueryRequest>;

const Citation = z.object({
  url: z.string().optional(),
  filename: z.string().optional(),
  page_start: z.int().optional(),
  page_end: z.int().optional(),
  heading_path: z.array(z.string()),
  char_start: z.int(),
  char_end: z.int(),
});
export const SearchResult = z.object({
  text: z.string(),
  source_id: z.string(),
  score: z.number(),
  tags: z.array(z.string()),
  chunk_id: z.string(),
  namespace: z.string(),
  /** What the score is made of. */
  scores: z.object({ semantic: z.number().optional(), lexical: z.number().optional() }),
  title: z.string(),
  metadata: JsonObject,
  citation: Citation,
});
export type SearchResult = z.infer<typeof SearchResult>;
export const QueryResponse = ok({
  results: z.array(SearchResult),
  /** Chunks that passed the filters and `min_score`. */
  total_candidates: z.int(),
  mode_used: SearchMode,
  /** How many of the last results were left out, so that the answer is no larger than a tool's result may be. Of tool calls only. */
  results_omitted: z.int().optional(),
});
export type QueryResponse = z.infer<typeof QueryResponse>;
