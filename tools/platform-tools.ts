import { FleetGetAgentsArguments, PLATFORM_TOOLS, type PlatformToolName } from '../contracts/api/tools.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { listToolAgents } from './tool-targets.js';

/** A call of a tool that the platform itself provides. */
export interface PlatformCall {
  tenant_id: string;
  arguments: Record<string, unknown>;
  /** As the caller gave it; unchecked, to be looked up within the tenant. */
  session_id?: string;
  /** Aborted when the call is canceled. */
  signal: AbortSignal;
}

/** Returns the result. @throws PlatformError with the code for the caller */
type PlatformTool = (call: PlatformCall) => Promise<unknown>;

/** The platform tools that are configured (decisions.md, WebSocket). */
export type PlatformTools = Partial<Record<PlatformToolName, PlatformTool>>;

/** Whether a name is reserved for a platform tool, configured or not. */
export function isPlatformTool(name: string): name is PlatformToolName {
  return (PLATFORM_TOOLS as readonly string[]).includes(name);
}

/** Runs a platform tool. @throws PlatformError SERVICE_UNAVAILABLE when the tool is not configured on this platform */
export async function runPlatformTool(
  tools: PlatformTools,
  name: PlatformToolName,
  call: PlatformCall,
): Promise<unknown> {
  const tool = tools[name];
  if (!tool) throw new PlatformError('SERVICE_UNAVAILABLE', `${name} is not configured on this platform.`);
  return tool(call);
}

/** `fleet.get_agents`: the tenant's available agents with their skills and tools. */
export function fleetGetAgents(db: Db): PlatformTool {
  return async ({ tenant_id, arguments: args }) => {
    const filter = FleetGetAgentsArguments.safeParse(args);
    if (!filter.success) {
      const [issue] = filter.error.issues;
      throw new PlatformError(
        'BAD_REQUEST',
        `arguments: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim(),
      );
    }
    return db.tenant(tenant_id, (tx) => listToolAgents(tx, tenant_id, filter.data));
  };
}
