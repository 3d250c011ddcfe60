import { addressReader } from '../list/address.js';

export const MODES = ['hybrid', 'semantic', 'lexical'] as const;

/** What the address of the knowledge bases says: words of the list, the base that is shown, and what of it. `q`, `mode`: a query. */
export interface KnowledgeSearch {
  find?: string;
  base?: string;
  tab?: 'jobs' | 'query';
  job?: string;
  q?: string;
  mode?: (typeof MODES)[number];
}

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseKnowledgeSearch(search: Record<string, unknown>): KnowledgeSearch {
  const { text, one } = addressReader(search);
  return { ...text('find', 'base', 'job', 'q'), ...one('tab', ['jobs', 'query'] as const), ...one('mode', MODES) };
}
