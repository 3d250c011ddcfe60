import { FleetGetAgentsArguments, PLATFORM_TOOLS, type PlatformToolName } from '../contracts/api/tools.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { ToolRequest } from './call-context.js';
import type { PlanTool } from './plan-tool.js';
import { listToolAgents } from './tool-targets.js';

/** Whether a name is reserved for a platform tool, configured or not. */
export function isPlatformTool(name: string): name is PlatformToolName {
  return (PLATFORM_TOOLS as readonly string[]).includes(name);
}

/** What the platform's tools need. */
export interface PlatformToolDeps {
  db: Db;
  /** Absent where agents may not propose plans. */
  planTool?: PlanTool;
}

async function getAgents(db: Db, { caller, payload }: ToolRequest): Promise<unknown> {
  const { data: filter, error } = FleetGetAgentsArguments.safeParse(payload.arguments);
  if (filter) return db.tenant(caller.tenant_id, (tx) => listToolAgents(tx, caller.tenant_id, filter));
  const [issue] = error.issues;
  throw new PlatformError('BAD_REQUEST', `arguments: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim());
}

/**
 * Runs a tool that the platform itself provides (decisions.md, WebSocket). `fleet.get_agents` lists the tenant's available agents with
 * their skills and tools; `plan.create` proposes a plan.
 * @throws PlatformError SERVICE_UNAVAILABLE for a tool that is not configured on this platform, BAD_REQUEST for its arguments
 */
export async function runPlatformTool(
  { db, planTool }: PlatformToolDeps,
  name: PlatformToolName,
  request: ToolRequest,
): Promise<unknown> {
  if (name === 'fleet.get_agents') return getAgents(db, request);
  if (name === 'plan.create' && planTool) return planTool(request);
  throw new PlatformError('SERVICE_UNAVAILABLE', `${name} is not configured on this platform.`);
}
