import type { AgentRef } from '../../agents/agent-row.js';
import { endSaturation, markSaturated } from '../../agents/agent-saturation.js';
import type { Db } from '../../db/pool.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import { settledWithin } from '../../runtime/promises/settled-within.js';

/** How often saturated agents are looked at. */
const TICK_MS = 50;
/** An agent that has only little room again stays marked for this long, so that its row is not written with every dispatch that ends. */
const LITTLE_ROOM_MS = 250;
/** An agent with less than this part of its maximum has ample room: its mark ends at once. */
const AMPLE_ROOM = 7 / 8;
/** How long the release of a refused dispatch waits for its agent's mark. */
const KNOWN_MS = 500;
/** How often a mark is renewed; it is valid for five seconds. */
const RENEW_MS = 1_000;
const IDLE_MS = 60_000;
/** Concurrent writes of marks, one of each tenant. They share the platform's connections with the renewals of nodes and the sweeper. */
const WRITES_AT_ONCE = 2;
/** Writes of one tenant that may wait. Marks beyond are written with the next renewal. */
const WRITES_WAITING_MAX = 1_000;

export interface SaturationOptions {
  db: Db;
  log: Logger;
  meshId: string;
  /** The agent has room again. */
  fill(agent: AgentRef): void;
  /** Whether the agent may have no further dispatch from this node. @param part of what it may have, up to 1 */
  isFull(agent: AgentRef, part?: number): boolean;
}

interface Mark {
  agent: AgentRef;
  /** Since when it is marked, on `performance.now()`. */
  sinceMs: number;
  /** When it was last written, on `performance.now()`; -Infinity while it is not on the record. */
  writtenAtMs: number;
  /** After a failure nothing is written before this time, on `performance.now()`. */
  retryAtMs: number;
  /** The write that is under way. */
  writing: Promise<void> | undefined;
}

/**
 * Tells the routing of all nodes which agents this node has no room for (`agents.saturated_until`), so that messages go to others, or queue. Agents that are
 * not full cost nothing here. If the write of a mark fails, a refused dispatch or the next renewal repeats it.
 */
export class Saturation {
  readonly #options: SaturationOptions;
  readonly #marks = new Map<string, Mark>();
  readonly #loop: Loop;
  readonly #turns = new FairSemaphore({
    limit: WRITES_AT_ONCE,
    perKey: 1,
    waitingMax: WRITES_WAITING_MAX,
    refusal: () => new PlatformError('SERVICE_UNAVAILABLE', 'Too many marks of the tenant wait.'),
  });

  constructor(options: SaturationOptions) {
    this.#options = options;
    const work = async (): Promise<number> => {
      void this.#turn(); // a write that waits for one agent's row holds up no other
      return this.#marks.size === 0 ? IDLE_MS : TICK_MS;
    };
    this.#loop = new Loop({ name: 'saturation', intervalMs: IDLE_MS, work, log: options.log });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends the marks of agents that have room now; others end by themselves. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#turn();
  }

  /** Marks an agent that is full. Resolves when that is on the record, or could not be written. Never rejects. */
  async mark(agent: AgentRef): Promise<void> {
    const key = agentKeyOf(agent);
    for (let known = this.#marks.get(key); known?.writing; known = this.#marks.get(key)) await known.writing;
    if (!this.#options.isFull(agent)) return;
    const mark = this.#marks.get(key) ?? this.#add(key, agent);
    await this.#renew(mark);
  }

  /** As `mark`, but waits for `KNOWN_MS` at most. */
  async known(agent: AgentRef): Promise<void> {
    await settledWithin(this.mark(agent), KNOWN_MS);
  }

  #add(key: string, agent: AgentRef): Mark {
    const never = Number.NEGATIVE_INFINITY;
    const sinceMs = performance.now();
    const mark: Mark = { agent, sinceMs, writtenAtMs: never, retryAtMs: never, writing: undefined };
    this.#marks.set(key, mark);
    this.#loop.wake();
    return mark;
  }

  async #turn(): Promise<void> {
    const marks = [...this.#marks.values()];
    await Promise.all(marks.map((mark) => (this.#hasRoom(mark) ? this.#end(mark) : this.#renew(mark))));
  }

  #hasRoom({ agent, sinceMs }: Mark): boolean {
    const { isFull } = this.#options;
    if (!isFull(agent, AMPLE_ROOM)) return true;
    return !isFull(agent) && performance.now() - sinceMs >= LITTLE_ROOM_MS;
  }

  async #renew(mark: Mark): Promise<void> {
    if (performance.now() - mark.writtenAtMs < RENEW_MS) return;
    await this.#write(mark, async () => {
      const { db, meshId } = this.#options;
      await this.#inTurn(mark, () => markSaturated(db, mark.agent, meshId));
      mark.writtenAtMs = performance.now();
    });
  }

  async #end(mark: Mark): Promise<void> {
    const { db, meshId, fill, isFull } = this.#options;
    const { agent } = mark;
    await this.#write(mark, async () => {
      mark.writtenAtMs = Number.NEGATIVE_INFINITY;
      const hasRoom = await this.#inTurn(mark, () => endSaturation(db, agent, meshId));
      mark.sinceMs = performance.now();
      // If the agent is full again, the mark stays, and the next turn writes it.
      if (!isFull(agent)) this.#marks.delete(agentKeyOf(agent));
      if (hasRoom) fill(agent);
    });
  }

  #inTurn<T>({ agent }: Mark, write: () => Promise<T>): Promise<T> {
    return this.#turns.run(agent.tenant_id, write);
  }

  /** One write at a time for each agent, so that the record has the last one. */
  #write(mark: Mark, work: () => Promise<void>): Promise<void> {
    if (mark.writing || performance.now() < mark.retryAtMs) return mark.writing ?? Promise.resolve();
    const failed = (error: unknown): void => {
      mark.retryAtMs = performance.now() + RENEW_MS;
      const { instance_id } = mark.agent;
      this.#options.log.warn({ err: errorMessage(error), instance_id }, 'saturation of an agent could not be written');
    };
    mark.writing = work()
      .catch(failed)
      .finally(() => {
        mark.writing = undefined;
      });
    return mark.writing;
  }
}
