import { LRUCache } from 'lru-cache';

/** Calls that are remembered on a node; beyond them the count of the call that was made longest ago begins anew. */
const CALLS_MAX = 50_000;

/**
 * Counts how often each dispatch made the same tool call, for the guard `limits`. Kept by the node that receives the calls of a dispatch, as
 * long as the process lives: a loop of calls is quick.
 */
export class RepeatedCalls {
  readonly #counts = new LRUCache<string, number>({ max: CALLS_MAX });

  /**
   * Counts a call.
   * @param maker what makes the calls: the dispatch, or the agent where a call names none
   * @param digest of tool and arguments
   * @returns how often it was made, this call included
   */
  count(maker: string, digest: string): number {
    const key = `${maker} ${digest}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count;
  }
}
