import { LRUCache } from 'lru-cache';
import type { SentDispatch } from './sent-dispatch.js';

/** Ended dispatches that are remembered, so that a late frame costs no query. */
const ENDED_MAX = 5_000;

/** The dispatches that connected agents of this node have, and the last ones that ended. */
export class SentDispatches {
  readonly #byFrame = new Map<string, SentDispatch>();
  readonly #byAgent = new Map<string, Set<SentDispatch>>();
  /** Frame id → agent. */
  readonly #ended = new LRUCache<string, string>({ max: ENDED_MAX });

  /** Takes a dispatch in until its result has come. */
  add(dispatch: SentDispatch): void {
    const { frameId, agentKey } = dispatch;
    this.#byFrame.set(frameId, dispatch);
    this.#byAgent.set(agentKey, (this.#byAgent.get(agentKey) ?? new Set()).add(dispatch));
    void dispatch.result.then(() => this.#remove(dispatch));
  }

  get(frameId: string): SentDispatch | undefined {
    return this.#byFrame.get(frameId);
  }

  /** The dispatches whose result this agent has not sent yet. */
  openOf(agentKey: string): SentDispatch[] {
    return [...(this.#byAgent.get(agentKey) ?? [])].filter(({ isOpen }) => isOpen);
  }

  /** Whether the dispatch of that frame was this agent's and has ended lately. */
  endedLately(frameId: string, agentKey: string): boolean {
    return this.#ended.get(frameId) === agentKey;
  }

  noteEnded(frameId: string, agentKey: string): void {
    this.#ended.set(frameId, agentKey);
  }

  #remove(dispatch: SentDispatch): void {
    const { frameId, agentKey } = dispatch;
    this.#byFrame.delete(frameId);
    this.noteEnded(frameId, agentKey);
    const ofAgent = this.#byAgent.get(agentKey);
    ofAgent?.delete(dispatch);
    if (ofAgent?.size === 0) this.#byAgent.delete(agentKey);
  }
}
