import { LRUCache } from 'lru-cache';
import type { DispatchRef } from '../../messages/dispatch/dispatch-ref.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { DispatchConnection, InflightDeps } from './dispatch-end.js';
import { InflightDispatch } from './inflight-dispatch.js';

/** Ended dispatches that are remembered, so that a late frame costs no query. */
const ENDED_REMEMBERED = 5_000;
/** Dispatches without a written end that are remembered. */
const UNWRITTEN_MAX = 10_000;

/** Notes that a dispatch went out although its end is not on the record; the oldest notes give way. */
export function remember(unwritten: Set<string>, id: string): void {
  unwritten.add(id);
  if (unwritten.size > UNWRITTEN_MAX) unwritten.delete(unwritten.values().next().value ?? '');
}

/** Every dispatch to a connected agent that runs on this node, and the last ones that did. */
export class InflightTable {
  readonly #byFrame = new Map<string, InflightDispatch>();
  readonly #byAgent = new Map<string, Set<InflightDispatch>>();
  /** Frame id → agent. */
  readonly #ended = new LRUCache<string, string>({ max: ENDED_REMEMBERED });
  /** Went out, and their supervisor has to write the end: a defect or a lasting refusal of the database, so there are few. */
  readonly #unwritten = new Set<string>();
  readonly #around: InflightDeps;
  readonly #onAgentIdle: (agentKey: string) => void;

  /** @param onAgentIdle called when the last dispatch of an agent has ended */
  constructor(around: InflightDeps, onAgentIdle: (agentKey: string) => void) {
    this.#around = around;
    this.#onAgentIdle = onAgentIdle;
  }

  get size(): number {
    return this.#byFrame.size;
  }

  /** Takes a dispatch in, in memory before anything else, and starts it. */
  start(ref: DispatchRef, connection: DispatchConnection): InflightDispatch {
    return this.#add(new InflightDispatch(ref, connection, this.#around));
  }

  /** Takes in a dispatch that is on the record as sent, and sends it. */
  startSent(open: OpenDispatch, connection: DispatchConnection): InflightDispatch {
    const dispatch = this.#add(new InflightDispatch(open, connection, this.#around, open));
    dispatch.sendFirst();
    return dispatch;
  }

  /** Whether a dispatch that is not here any more went out from here, and its end could not be written. */
  hasSent(frameId: string): boolean {
    return this.#unwritten.has(frameId);
  }

  #add(dispatch: InflightDispatch): InflightDispatch {
    this.#byFrame.set(dispatch.frameId, dispatch);
    const ofAgent = this.#byAgent.get(dispatch.agentKey) ?? new Set();
    this.#byAgent.set(dispatch.agentKey, ofAgent.add(dispatch));
    void dispatch.done.then(() => this.#remove(dispatch));
    return dispatch;
  }

  get(frameId: string): InflightDispatch | undefined {
    return this.#byFrame.get(frameId);
  }

  ofAgent(agentKey: string): InflightDispatch[] {
    return [...(this.#byAgent.get(agentKey) ?? [])];
  }

  countOf(agentKey: string): number {
    return this.#byAgent.get(agentKey)?.size ?? 0;
  }

  /** Dispatches that wait for their agent. */
  open(): InflightDispatch[] {
    return [...this.#byFrame.values()].filter((dispatch) => dispatch.isOpen);
  }

  /** Whether the dispatch of that frame was this agent's and has ended lately. */
  endedLately(frameId: string, agentKey: string): boolean {
    return this.#ended.get(frameId) === agentKey;
  }

  /** Takes note that a dispatch of this agent has ended. */
  noteEnded(frameId: string, agentKey: string): void {
    this.#ended.set(frameId, agentKey);
  }

  /** Ends all of an agent's dispatches with AGENT_DISCONNECTED; resolves when that is in the database. */
  async failAllAsLost(agentKey: string): Promise<void> {
    await Promise.all(this.ofAgent(agentKey).map((dispatch) => dispatch.failAsLost()));
  }

  #remove(dispatch: InflightDispatch): void {
    const { frameId, agentKey } = dispatch;
    this.#byFrame.delete(frameId);
    if (!dispatch.written) remember(this.#unwritten, frameId);
    this.noteEnded(frameId, agentKey);
    const ofAgent = this.#byAgent.get(agentKey);
    ofAgent?.delete(dispatch);
    if (ofAgent?.size !== 0) return;
    this.#byAgent.delete(agentKey);
    this.#onAgentIdle(agentKey);
  }
}
