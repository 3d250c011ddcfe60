import { LIMITS } from '../contracts/limits.js';
import type { Chain } from './call-context.js';

/** Limit of the arguments of all calls in flight on a node; they are kept until the results arrive. */
const ARGUMENT_BYTES_MAX = 64 * 1024 * 1024;

/** Limits the tool calls in flight, per caller and per node, and the bytes of their arguments. */
export class Admission {
  readonly #byCaller = new Map<string, number>();
  #calls = 0;
  #bytes = 0;

  /** Admits a call. @returns a function to call once when the call has its result; null when a limit is reached */
  enter(callerKey: string, bytes: number): (() => void) | null {
    const own = this.#byCaller.get(callerKey) ?? 0;
    if (own >= LIMITS.toolCallsInFlightPerCaller || this.#calls >= LIMITS.toolCallsInFlightPerNode) return null;
    if (this.#bytes + bytes > ARGUMENT_BYTES_MAX) return null;
    this.#byCaller.set(callerKey, own + 1);
    this.#calls += 1;
    this.#bytes += bytes;
    return () => this.#leave(callerKey, bytes);
  }

  #leave(callerKey: string, bytes: number): void {
    const left = (this.#byCaller.get(callerKey) ?? 1) - 1;
    if (left > 0) this.#byCaller.set(callerKey, left);
    else this.#byCaller.delete(callerKey);
    this.#calls -= 1;
    this.#bytes -= bytes;
  }
}

/** A call whose target is chosen, before it is sent. */
interface ProposedCall {
  tool: string;
  /** Null for a tool of the platform itself. */
  target: { instance_id: string } | null;
  chain: Chain;
}

/** Whether a call is allowed; a denial has the code of the call's result. */
type Verdict = { allowed: true } | { allowed: false; code: 'POLICY_DENIED'; message: string };

/** Decides whether a call is allowed. Every tool call passes this function, wherever it comes from and goes to. */
export function authorize({ tool, target, chain }: ProposedCall): Verdict {
  if (chain.length >= LIMITS.toolCallDepthMax) {
    return denied(`Nested tool calls may be at most ${LIMITS.toolCallDepthMax} deep.`);
  }
  if (target && isLoop(chain, tool, target.instance_id)) {
    return denied(`The call is part of a call of ${tool} that ${target.instance_id} is already answering.`);
  }
  return { allowed: true };
}

/** Whether an instance's tool would wait for itself. */
export function isLoop(chain: Chain, tool: string, instanceId: string): boolean {
  return chain.some((link) => link.tool === tool && link.instance_id === instanceId);
}

function denied(message: string): Verdict {
  return { allowed: false, code: 'POLICY_DENIED', message };
}
