import { LIMITS } from '../contracts/limits.js';
import type { Chain, ToolCaller } from './call-context.js';

/** Limit of the arguments of all calls in flight on a node; they are kept until the results arrive. */
const ARGUMENT_BYTES_MAX = 64 * 1024 * 1024;

/** The calls that a process takes at once. */
export interface CallSlotsLimits {
  perCaller: number;
  perNode: number;
}

/** A tenant's part of a node's calls and bytes, so that no tenant alone takes the room of all. */
const TENANT_SHARE = 0.25;

/** What calls take of a node's room. */
interface Room {
  calls: number;
  bytes: number;
}

/** Limits tool calls, per caller, tenant and node, and the bytes of their arguments. */
export class CallSlots {
  readonly #limits: CallSlotsLimits;
  readonly #byCaller = new Map<string, number>();
  readonly #byTenant = new Map<string, Room>();
  readonly #all: Room = { calls: 0, bytes: 0 };

  constructor(limits: CallSlotsLimits) {
    this.#limits = limits;
  }

  /** Takes a slot for a call. @returns a function that gives it up (further calls of it do nothing); null when a limit is reached */
  enter({ key, tenant_id }: Pick<ToolCaller, 'key' | 'tenant_id'>, bytes: number): (() => void) | null {
    const own = this.#byCaller.get(key) ?? 0;
    const ofTenant = this.#byTenant.get(tenant_id) ?? { calls: 0, bytes: 0 };
    if (own >= this.#limits.perCaller) return null;
    if (!this.#fits(this.#all, bytes, 1) || !this.#fits(ofTenant, bytes, TENANT_SHARE)) return null;
    this.#byCaller.set(key, own + 1);
    this.#byTenant.set(tenant_id, ofTenant);
    count([this.#all, ofTenant], 1, bytes);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      count([this.#all, ofTenant], -1, -bytes);
      if (ofTenant.calls === 0) this.#byTenant.delete(tenant_id);
      this.#leaveCaller(key);
    };
  }

  /** @param share of the node's room */
  #fits({ calls, bytes }: Room, more: number, share: number): boolean {
    return calls < this.#limits.perNode * share && bytes + more <= ARGUMENT_BYTES_MAX * share;
  }

  #leaveCaller(key: string): void {
    const left = (this.#byCaller.get(key) ?? 1) - 1;
    if (left > 0) this.#byCaller.set(key, left);
    else this.#byCaller.delete(key);
  }
}

function count(rooms: readonly Room[], calls: number, bytes: number): void {
  for (const room of rooms) {
    room.calls += calls;
    room.bytes += bytes;
  }
}

/**
 * Why a call is denied (POLICY_DENIED); undefined when it is allowed. Every tool call passes this function, wherever it comes from and goes to.
 * @param instanceId the target; undefined for a tool of the platform itself
 */
export function whyDenied(tool: string, chain: Chain, instanceId?: string): string | undefined {
  if (chain.length >= LIMITS.toolCallDepthMax)
    return `Nested tool calls may be at most ${LIMITS.toolCallDepthMax} deep.`;
  if (instanceId === undefined || !isLoop(chain, tool, instanceId)) return undefined;
  return `The call is part of a call of ${tool} that ${instanceId} is already answering.`;
}

/** Whether an instance's tool would wait for itself. */
export function isLoop(chain: Chain, tool: string, instanceId: string): boolean {
  return chain.some((link) => link.tool === tool && link.instance_id === instanceId);
}
