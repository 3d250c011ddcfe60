import { LRUCache } from 'lru-cache';
import type { SentDispatch } from '../connected/connected-transport.js';
import type { Connection } from './connection.js';

/** Ended dispatches that are remembered, so that a late frame costs no query. */
const ENDED_MAX = 5_000;

/** The newest connection of each agent on this node, suspended ones included. It answers an agent's hellos one at a time. */
export class Registry {
  readonly #current = new Map<string, Connection>();
  readonly #hellos = new Map<string, Promise<void>>();
  readonly #epochChanges = new Map<string, Promise<void>>();

  get(agentKey: string): Connection | undefined {
    return this.#current.get(agentKey);
  }

  set(connection: Connection): void {
    this.#current.set(connection.agentKey, connection);
  }

  /** Forgets the connection unless a newer one has taken its place. */
  remove(connection: Connection): void {
    if (this.#current.get(connection.agentKey) === connection) this.#current.delete(connection.agentKey);
  }

  all(): Connection[] {
    return [...this.#current.values()];
  }

  /** Whether a hello of this agent is being answered. */
  isConnecting(agentKey: string): boolean {
    return this.#hellos.has(agentKey);
  }

  /** Resolves when this agent's epoch is not being raised. */
  async epochSettled(agentKey: string): Promise<void> {
    await this.#epochChanges.get(agentKey);
  }

  /** Raises the agent's epoch; `epochSettled` waits for it. */
  async raiseEpoch<T>(agentKey: string, work: () => Promise<T>): Promise<T> {
    const raising = work();
    const settled = raising.then(noResult, noResult);
    this.#epochChanges.set(agentKey, settled);
    try {
      return await raising;
    } finally {
      this.#epochChanges.delete(agentKey);
    }
  }

  /** Answers a hello after the earlier hellos of the same agent. */
  async serializeHello<T>(agentKey: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#hellos.get(agentKey) ?? Promise.resolve()).then(work);
    const settled = mine.then(noResult, noResult);
    this.#hellos.set(agentKey, settled);
    try {
      return await mine;
    } finally {
      if (this.#hellos.get(agentKey) === settled) this.#hellos.delete(agentKey);
    }
  }
}

function noResult(): void {}

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
