import { LIMITS } from '../contracts/limits.js';
import type { Chain } from './call-context.js';

/** Limit of the arguments of all calls in flight on a node; they are kept until the results arrive. */
const ARGUMENT_BYTES_MAX = 64 * 1024 * 1024;

/** The calls that a process takes at once. */
export interface AdmissionLimits {
  perCaller: number;
  perNode: number;
}

/** Limits tool calls, per caller and per node, and the bytes of their arguments. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #byCaller = new Map<string, number>();
  #calls = 0;
  #bytes = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Admits a call. @returns a function to call when the call is over, of which the first call counts; null when a limit is reached */
  enter(callerKey: string, bytes: number): (() => void) | null {
    const own = this.#byCaller.get(callerKey) ?? 0;
    if (own >= this.#limits.perCaller || this.#calls >= this.#limits.perNode) return null;
    if (this.#bytes + bytes > ARGUMENT_BYTES_MAX) return null;
    this.#byCaller.set(callerKey, own + 1);
    this.#calls += 1;
    this.#bytes += bytes;
    let isIn = true;
    return () => {
      if (isIn) this.#leave(callerKey, bytes);
      isIn = false;
    };
  }

  #leave(callerKey: string, bytes: number): void {
    const left = (this.#byCaller.get(callerKey) ?? 1) - 1;
    if (left > 0) this.#byCaller.set(callerKey, left);
    else this.#byCaller.delete(callerKey);
    this.#calls -= 1;
    this.#bytes -= bytes;
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
