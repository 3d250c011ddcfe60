import { FleetGetAgentsArguments, PLATFORM_TOOLS, type PlatformToolName } from '../contracts/api/tools.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { listToolAgents } from './tool-targets.js';

/** Whether a name is reserved for a platform tool, configured or not. */
export function isPlatformTool(name: string): name is PlatformToolName {
  return (PLATFORM_TOOLS as readonly string[]).includes(name);
}

/**
 * Runs a tool that the platform itself provides (decisions.md, WebSocket). `fleet.get_agents` lists the tenant's available agents with
 * their skills and tools.
 * @throws PlatformError SERVICE_UNAVAILABLE for a tool that is not configured on this platform, BAD_REQUEST for its arguments
 */
export async function runPlatformTool(
  db: Db,
  tenantId: string,
  name: PlatformToolName,
  given: object,
): Promise<unknown> {
  if (name !== 'fleet.get_agents')
    throw new PlatformError('SERVICE_UNAVAILABLE', `${name} is not configured on this platform.`);
  const { data: filter, error } = FleetGetAgentsArguments.safeParse(given);
  if (filter) return db.tenant(tenantId, (tx) => listToolAgents(tx, tenantId, filter));
  const [issue] = error.issues;
  throw new PlatformError('BAD_REQUEST', `arguments: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim());
}
