import { FleetGetAgentsArguments, PLATFORM_TOOLS, type PlatformToolName } from '../contracts/tools.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { listToolAgents } from './tool-targets.js';

/** A call of a tool of the platform's own. */
export interface PlatformCall {
  tenant_id: string;
  arguments: Record<string, unknown>;
  /** As the caller says; to be looked for within the tenant. */
  session_id?: string;
  /** Aborted when the result is not wanted any more. */
  signal: AbortSignal;
}

/** Gives the result; throws PlatformError with the code that the caller is to see. */
type PlatformTool = (call: PlatformCall) => Promise<unknown>;

/** The tools that the platform itself offers to agents (decisions.md, WebSocket). */
export class PlatformTools {
  readonly #tools = new Map<PlatformToolName, PlatformTool>();

  register(name: PlatformToolName, tool: PlatformTool): this {
    this.#tools.set(name, tool);
    return this;
  }

  /** Whether the name is one of the platform's, served here or not. */
  owns(name: string): name is PlatformToolName {
    return (PLATFORM_TOOLS as readonly string[]).includes(name);
  }

  /** @throws PlatformError SERVICE_UNAVAILABLE when this platform is not set up to serve it */
  async run(name: PlatformToolName, call: PlatformCall): Promise<unknown> {
    const tool = this.#tools.get(name);
    if (!tool) throw new PlatformError('SERVICE_UNAVAILABLE', `${name} is not configured on this platform.`);
    return tool(call);
  }
}

/** `fleet.get_agents`: the tenant's available agents with their skills and tools. */
export function fleetGetAgents(db: Db): PlatformTool {
  return async ({ tenant_id, arguments: given }) => {
    const filter = FleetGetAgentsArguments.safeParse(given);
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
