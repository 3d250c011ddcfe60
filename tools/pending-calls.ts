import { once, setMaxListeners } from 'node:events';
import { LRUCache } from 'lru-cache';
import { agentKeyOf, uuidOf } from '../runtime/ids.js';
import type { CallParent, Chain } from './call-context.js';
import type { RoutedCall } from './tool-link.js';
import type { Outcome } from './tool-result.js';

/** The number of ended calls to remember, so that a late result differs from one for an unknown call. */
const ENDED_REMEMBERED = 5_000;

/** A call that an agent is answering. */
export interface PendingCall {
  readonly call: RoutedCall;
  readonly agentKey: string;
  /** Resolves to the outcome of the first `settle`. */
  readonly done: Promise<Outcome>;
  /** This call as the parent of calls that the agent makes to answer it. */
  readonly asParent: CallParent;
  /** Ends the call. Only the first outcome counts. */
  settle(outcome: Outcome): void;
}

/** The calls of this node that agents are answering, by the UUID in their ids. Each accepts one result. */
export class PendingCalls {
  readonly #byUuid = new Map<string, PendingCall>();
  readonly #byAgent = new Map<string, Set<PendingCall>>();
  /** The agent of each recently ended call, by UUID. */
  readonly #ended = new LRUCache<string, string>({ max: ENDED_REMEMBERED });
  readonly #idle = new Set<(agentKey: string) => void>();

  get size(): number {
    return this.#byUuid.size;
  }

  /** @param listener called when the last call that an agent was answering ends */
  onAgentIdle(listener: (agentKey: string) => void): void {
    this.#idle.add(listener);
  }

  /** Adds a call before it is sent to its agent. */
  add(call: RoutedCall): PendingCall {
    const { chain, session_id, traceparent, message_id } = call;
    const endsAtMs = performance.now() + call.deadline_ms;
    const ended = new AbortController();
    setMaxListeners(0, ended.signal); // each nested call adds a listener
    const pending: PendingCall = {
      call,
      agentKey: agentKeyOf({ tenant_id: call.tenant_id, instance_id: call.target.instance_id }),
      done: once(ended.signal, 'abort').then(() => ended.signal.reason),
      asParent: { chain, endsAtMs, ended: ended.signal, session_id, traceparent, message_id },
      settle: (outcome) => {
        if (ended.signal.aborted) return;
        ended.abort(outcome);
        this.#remove(pending);
      },
    };
    this.#byUuid.set(uuidOf(call.call_id), pending);
    this.#byAgent.set(pending.agentKey, (this.#byAgent.get(pending.agentKey) ?? new Set()).add(pending));
    return pending;
  }

  /** The pending call of an id (`call_…`) if it is the tenant's. */
  find(tenantId: string, callId: string): PendingCall | undefined {
    const pending = this.#byUuid.get(uuidOf(callId));
    return pending?.call.call_id === callId && pending.call.tenant_id === tenantId ? pending : undefined;
  }

  /** The pending call of a UUID if the given agent is answering it. */
  get(uuid: string, agentKey: string): PendingCall | undefined {
    const pending = this.#byUuid.get(uuid);
    return pending?.agentKey === agentKey ? pending : undefined;
  }

  countOf(agentKey: string): number {
    return this.#byAgent.get(agentKey)?.size ?? 0;
  }

  /** The longest chain of the calls that an agent is answering: a call without a parent may be part of that one. */
  longestChain(agentKey: string): Chain {
    let longest: Chain = [];
    for (const { call } of this.#byAgent.get(agentKey) ?? [])
      if (call.chain.length > longest.length) longest = call.chain;
    return longest;
  }

  /** Whether a call of that agent has ended recently. */
  endedRecently(uuid: string, agentKey: string): boolean {
    return this.#ended.get(uuid) === agentKey;
  }

  #remove(pending: PendingCall): void {
    const { agentKey } = pending;
    const uuid = uuidOf(pending.call.call_id);
    this.#byUuid.delete(uuid);
    this.#ended.set(uuid, agentKey);
    const ofAgent = this.#byAgent.get(agentKey);
    ofAgent?.delete(pending);
    if (ofAgent?.size !== 0) return;
    this.#byAgent.delete(agentKey);
    for (const listener of this.#idle) listener(agentKey);
  }
}
