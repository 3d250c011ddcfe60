import { setMaxListeners } from 'node:events';
import { LRUCache } from 'lru-cache';
import { agentKeyOf } from '../agents/agent-key.js';
import { uuidOf } from '../runtime/ids.js';
import type { PlacedCall } from './tool-link.js';
import type { Outcome } from './tool-result.js';
import type { Chain, Work } from './tool-work.js';

/** Ended calls that are remembered, so that a late result is told from one of a call that never was. */
const ENDED_REMEMBERED = 5_000;

/** A call that an agent is answering. */
export interface PendingCall {
  readonly call: PlacedCall;
  readonly agentKey: string;
  /** Resolves with the first outcome. */
  readonly done: Promise<Outcome>;
  /** What calls made on its behalf are part of. */
  readonly work: Work;
  /** Ends it. Only the first outcome counts. */
  settle(outcome: Outcome): void;
}

/** The calls that agents are answering for this node, by the UUID in their ids; results are accepted once. */
export class PendingCalls {
  readonly #byUuid = new Map<string, PendingCall>();
  readonly #byAgent = new Map<string, Set<PendingCall>>();
  /** UUID → agent. */
  readonly #ended = new LRUCache<string, string>({ max: ENDED_REMEMBERED });
  readonly #idle = new Set<(agentKey: string) => void>();

  get size(): number {
    return this.#byUuid.size;
  }

  /** @param listener called when an agent has ended the last call that it was answering */
  onAgentIdle(listener: (agentKey: string) => void): void {
    this.#idle.add(listener);
  }

  /** Takes note that an agent is about to get a call. */
  hold(call: PlacedCall): PendingCall {
    const ended = new AbortController();
    setMaxListeners(0, ended.signal); // every call made on its behalf listens
    let resolve: (outcome: Outcome) => void = () => undefined;
    const hand: PendingCall = {
      call,
      agentKey: agentKeyOf({ tenant_id: call.tenant_id, instance_id: call.target.instance_id }),
      done: new Promise((settled) => {
        resolve = settled;
      }),
      work: {
        chain: call.chain,
        endsAtMs: performance.now() + call.deadline_ms,
        ended: ended.signal,
        traceparent: call.traceparent,
        ...(call.session_id !== undefined && { session_id: call.session_id }),
      },
      settle: (outcome) => {
        if (ended.signal.aborted) return;
        resolve(outcome);
        ended.abort();
        this.#remove(hand);
      },
    };
    this.#byUuid.set(uuidOf(call.call_id), hand);
    this.#byAgent.set(hand.agentKey, (this.#byAgent.get(hand.agentKey) ?? new Set()).add(hand));
    return hand;
  }

  /** The call of that UUID, while an agent is answering it. */
  find(uuid: string): PendingCall | undefined {
    return this.#byUuid.get(uuid);
  }

  /** The call of that UUID, when that agent is answering it. */
  get(uuid: string, agentKey: string): PendingCall | undefined {
    const hand = this.#byUuid.get(uuid);
    return hand?.agentKey === agentKey ? hand : undefined;
  }

  countOf(agentKey: string): number {
    return this.#byAgent.get(agentKey)?.size ?? 0;
  }

  /** The longest chain that the agent is part of: a call that does not say what it belongs to may belong to that. */
  deepest(agentKey: string): Chain {
    let deepest: Chain = [];
    for (const { call } of this.#byAgent.get(agentKey) ?? [])
      if (call.chain.length > deepest.length) deepest = call.chain;
    return deepest;
  }

  /** Whether the call was that agent's and has ended lately. */
  endedLately(uuid: string, agentKey: string): boolean {
    return this.#ended.get(uuid) === agentKey;
  }

  #remove(hand: PendingCall): void {
    const uuid = uuidOf(hand.call.call_id);
    this.#byUuid.delete(uuid);
    this.#ended.set(uuid, hand.agentKey);
    const ofAgent = this.#byAgent.get(hand.agentKey);
    ofAgent?.delete(hand);
    if (ofAgent?.size !== 0) return;
    this.#byAgent.delete(hand.agentKey);
    for (const listener of this.#idle) listener(hand.agentKey);
  }
}
