import type { QueryResponse, SearchFilters, SearchMode } from '../contracts/api/knowledge-query.js';

/** Makes vectors of texts. */
export interface Embedder {
  /** The name that is stored with each chunk; chunks of another model are stale. */
  readonly model: string;
  readonly dimensions: number;
  readonly kind: 'http' | 'local';
  /**
   * Embeds texts, one vector of length 1 for each, in their order.
   * @throws PlatformError `BAD_GATEWAY` when the provider fails
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** What a search may read: the caller's tenant, and those of its knowledge bases that the caller may see. */
export interface SearchScope {
  tenantId: string;
  namespaces: readonly string[];
}

/** A query with the defaults of its knowledge bases applied. */
export interface KnowledgeQuery {
  query: string;
  topK: number;
  minScore: number;
  /** Absent: the best that the platform can do. */
  mode?: SearchMode;
  filters?: SearchFilters;
}

/** The wire shape of an answer, without `ok`. */
export type KnowledgeResults = Omit<QueryResponse, 'ok'>;

/** The text that is embedded for a chunk: title and heading path first, a line each. */
export function embeddedText(title: string, headingPath: readonly string[], text: string): string {
  return [title, headingPath.join(' > '), text].filter((line) => line !== '').join('\n');
}
