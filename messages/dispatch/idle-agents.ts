import { LRUCache } from 'lru-cache';
import type { OpenDispatch } from './dispatches.js';

type TypedAgent = Pick<OpenDispatch, 'tenant_id' | 'agent_type' | 'instance_id'>;

/** Agent types of which idle agents are remembered, and how many agents of each. */
const TYPES_MAX = 10_000;
const AGENTS_MAX = 1_000;
/** An agent that was idle for so long, in milliseconds, is forgotten. */
const REMEMBERED_MS = 600_000;

/**
 * Agents that had nothing more to do when they answered this process, those that were offered least recently first. The list is a guess that saves the
 * search for the last free agent among hundreds. The record decides whether one is idle (`choose_idle` in db/functions/routing/choose_agent.sql).
 */
export class IdleAgents {
  /** By tenant and type: since when each is idle, on `performance.now()`. */
  readonly #types = new LRUCache<string, Map<string, number>>({ max: TYPES_MAX });

  add({ tenant_id, agent_type, instance_id }: TypedAgent): void {
    const key = keyOf(tenant_id, agent_type);
    const idle = this.#types.get(key) ?? new Map<string, number>();
    idle.delete(instance_id);
    if (idle.size >= AGENTS_MAX) return;
    idle.set(instance_id, performance.now());
    this.#types.set(key, idle);
  }

  /** The agent has got work. */
  remove({ tenant_id, agent_type, instance_id }: TypedAgent): void {
    this.#types.peek(keyOf(tenant_id, agent_type))?.delete(instance_id);
  }

  /** Up to `atMost` idle agents. They go to the end of the list, so that the next call gives others. */
  some(tenantId: string, agentType: string, atMost: number): string[] {
    const idle = this.#types.get(keyOf(tenantId, agentType));
    if (!idle) return [];
    const found: [string, number][] = [];
    for (const [instanceId, sinceMs] of idle) {
      if (found.length === atMost) break;
      if (performance.now() - sinceMs > REMEMBERED_MS) idle.delete(instanceId);
      else found.push([instanceId, sinceMs]);
    }
    for (const [instanceId, sinceMs] of found) {
      idle.delete(instanceId);
      idle.set(instanceId, sinceMs);
    }
    return found.map(([instanceId]) => instanceId);
  }
}

function keyOf(tenantId: string, agentType: string): string {
  return `${tenantId}/${agentType}`;
}
