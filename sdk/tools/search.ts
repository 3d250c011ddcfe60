import type { KnowledgeQueryRequest, KnowledgeQueryResponse } from '../client/generated/schema-types.js';
import { errorText } from '../handlers/sendable.js';
import type { AgentLog } from '../log.js';
import { fromWire, toWire } from '../wire/names.js';
import { AwaitedOrLogged } from './awaited-or-logged.js';
import type { CallTool, CallToolOptions } from './tool-caller.js';
import { ToolError } from './tool-error.js';

/** What limits a search beside its words. */
export type SearchOptions = Omit<KnowledgeQueryRequest, 'query' | 'namespace' | 'namespaces'> &
  Pick<CallToolOptions, 'deadlineMs' | 'signal'>;

/**
 * Searches knowledge bases of the tenant, except private ones, by the tool `knowledge_base.query`.
 * @throws ToolError as `callTool` does
 */
export type Search = (
  namespaces: string | string[],
  query: string,
  options?: SearchOptions,
) => Promise<KnowledgeQueryResponse>;

/** `search` by tool calls, which policies see like any other. @param log gets the failure of a search that was not awaited */
export function searchBy(callTool: CallTool, log: AgentLog): Search {
  const search: Search = async (namespaces, query, { deadlineMs, signal, ...limits } = {}) => {
    const where = typeof namespaces === 'string' ? { namespace: namespaces } : { namespaces };
    const options = { ...(deadlineMs !== undefined && { deadlineMs }), ...(signal && { signal }) };
    const args = toWire({ ...where, query, ...limits }, { filters: { metadata: true } }) as Record<string, unknown>;
    const found = await callTool('knowledge_base.query', args, options);
    if (Array.isArray((found as { results?: unknown } | null)?.results)) {
      return fromWire(found, { results: { metadata: true } });
    }
    throw new ToolError('knowledge_base.query gave a result without `results`');
  };
  return (...args) =>
    new AwaitedOrLogged(search(...args), (error) =>
      log.warn({ error: errorText(error) }, 'a search that was not awaited failed'),
    );
}
