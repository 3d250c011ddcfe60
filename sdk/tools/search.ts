import type { z } from 'zod';
import { type QueryRequest, QueryResponse } from '../../contracts/api/knowledge/knowledge-query.js';
import type { CallTool, CallToolOptions } from './tool-caller.js';
import { ToolError } from './tool-error.js';

/** What limits a search beside its words. */
export type SearchOptions = Omit<z.input<typeof QueryRequest>, 'query' | 'namespace' | 'namespaces'> &
  Pick<CallToolOptions, 'deadlineMs' | 'signal'>;

/**
 * Searches knowledge bases of the tenant, except private ones, by the tool `knowledge_base.query`.
 * @throws ToolError as `callTool` does
 */
export type Search = (namespaces: string | string[], query: string, options?: SearchOptions) => Promise<QueryResponse>;

/** `search` by tool calls, which policies see like any other. */
export function searchBy(callTool: CallTool): Search {
  return async (namespaces, query, { deadlineMs, signal, ...limits } = {}) => {
    const where = typeof namespaces === 'string' ? { namespace: namespaces } : { namespaces };
    const options = { ...(deadlineMs !== undefined && { deadlineMs }), ...(signal && { signal }) };
    const { data, error } = QueryResponse.safeParse(
      await callTool('knowledge_base.query', { ...where, query, ...limits }, options),
    );
    if (data) return data;
    throw new ToolError('HANDLER_ERROR', `knowledge_base.query gave an unexpected result: ${error.message}`);
  };
}
