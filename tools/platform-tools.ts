import { FleetGetAgentsArguments, PLATFORM_TOOLS, type PlatformToolName } from '../contracts/tools.js';
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

/** The tools that the platform itself provides to agents (decisions.md, WebSocket). */
export class PlatformTools {
  readonly #tools = new Map<PlatformToolName, PlatformTool>();

  register(name: PlatformToolName, tool: PlatformTool): this {
    this.#tools.set(name, tool);
    return this;
  }

  /** Whether a name is reserved for a platform tool, configured or not. */
  owns(name: string): name is PlatformToolName {
    return (PLATFORM_TOOLS as readonly string[]).includes(name);
  }

  /** @throws PlatformError SERVICE_UNAVAILABLE when the tool is not configured on this platform */
  async run(name: PlatformToolName, call: PlatformCall): Promise<unknown> {
    const tool = this.#tools.get(name);
    if (!tool) throw new PlatformError('SERVICE_UNAVAILABLE', `${name} is not configured on this platform.`);
    return tool(call);
  }
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
