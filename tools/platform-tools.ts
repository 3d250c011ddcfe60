import { IngestRequest } from '../contracts/api/knowledge/knowledge.js';
import { QueryRequest, type QueryResponse } from '../contracts/api/knowledge/knowledge-query.js';
import { FleetGetAgentsArguments, PLATFORM_TOOLS, type PlatformToolName } from '../contracts/api/tools.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db } from '../db/pool.js';
import { readerOfAgent } from '../knowledge/base-access.js';
import type { Knowledge } from '../knowledge/knowledge.js';
import { PlatformError, parsedAs } from '../runtime/errors.js';
import { boundKeyOf } from './bound-key.js';
import type { TracedRequest } from './call-span.js';
import type { PlanTool } from './plan-tool.js';
import { listToolAgents } from './tool-targets.js';

/** What the platform's tools need. */
export interface PlatformToolDeps {
  db: Db;
  knowledge: Pick<Knowledge, 'query' | 'ingest'>;
  /** Absent where agents may not propose plans. */
  planTool?: PlanTool;
}

/** Whether a name is reserved for a platform tool. */
export function isPlatformTool(name: string): name is PlatformToolName {
  return (PLATFORM_TOOLS as readonly string[]).includes(name);
}

/** The key of the job: a repeat of the call, at another process for example, finds the job of the first one. */
function keyOfJob(request: TracedRequest): { idempotency_key?: string } {
  const idempotency_key = boundKeyOf(request);
  return idempotency_key === undefined ? {} : { idempotency_key };
}

/** Bytes of a tool's result that are left for the JSON around the results. */
const ENVELOPE_BYTES = 1_024;

/** Drops the last results of an answer until it fits into a tool's result. */
function fitting(answer: QueryResponse): QueryResponse {
  const sizes = answer.results.map((result) => Buffer.byteLength(JSON.stringify(result)) + 1);
  let bytes = sizes.reduce((sum, size) => sum + size, ENVELOPE_BYTES);
  let kept = sizes.length;
  while (bytes > LIMITS.toolResultBytes && kept > 0) bytes -= sizes[--kept] ?? 0;
  if (kept === sizes.length) return answer;
  return { ...answer, results: answer.results.slice(0, kept), results_omitted: sizes.length - kept };
}

/**
 * Runs a tool that the platform itself provides. `fleet.get_agents` lists the tenant's available agents with
 * their skills and tools; `knowledge_base.query` and `.ingest` reach the tenant's knowledge bases that are not private; `plan.create`
 * proposes a plan.
 * @throws PlatformError BAD_REQUEST for its arguments, and what the operation of the same name throws
 */
export async function runPlatformTool(
  { db, knowledge, planTool }: PlatformToolDeps,
  name: PlatformToolName,
  request: TracedRequest,
): Promise<unknown> {
  const { tenant_id, agent_type } = request.caller;
  const given = request.payload.arguments;
  const reader = readerOfAgent(tenant_id);
  switch (name) {
    case 'fleet.get_agents': {
      const filter = parsedAs(FleetGetAgentsArguments, given, 'arguments: ');
      return db.tenant(tenant_id, (tx) => listToolAgents(tx, tenant_id, filter));
    }
    case 'knowledge_base.query':
      return fitting({ ok: true, ...(await knowledge.query(reader, parsedAs(QueryRequest, given, 'arguments: '))) });
    case 'knowledge_base.ingest':
      return knowledge.ingest(
        { ...reader, name: `agent:${agent_type}` },
        { ...keyOfJob(request), ...parsedAs(IngestRequest, given, 'arguments: ') },
      );
    case 'plan.create':
      if (planTool) return planTool(request);
      throw new PlatformError('SERVICE_UNAVAILABLE', `${name} is not configured on this platform.`);
    default:
      return name satisfies never;
  }
}
