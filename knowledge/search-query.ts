import type { QueryResponse, SearchFilters, SearchMode } from '../contracts/api/knowledge/knowledge-query.js';

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
