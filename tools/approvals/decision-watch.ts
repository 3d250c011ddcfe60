import { addAbortListener } from 'node:events';
import type { Db } from '../../db/pool.js';
import type { MessageRef } from '../../messages/core.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import { decidedSince, isOpenRequest } from './tool-grants.js';

/** How often the record is asked for decisions whose notice was lost. It takes one statement, however many calls wait. */
const INTERVAL_MS = 2_000;

export interface DecisionWatchOptions {
  db: Db;
  bus: Pick<ChunkBus, 'subscribe'>;
  log: Logger;
  /** This process, as `tool_grants` names it. */
  meshId: string;
}

/** Tells the tool calls of this process that wait for a human when their requests are over. The bus announces decisions; the record has them. */
export class DecisionWatch {
  readonly #options: DecisionWatchOptions;
  /** By request; several calls may wait for one. */
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #loop: Loop;
  /** The database's time at the last look. */
  #lookedAt: Date | null = null;

  constructor(options: DecisionWatchOptions) {
    this.#options = options;
    const work = (): Promise<void> => this.#look();
    this.#loop = new Loop({ name: 'tool decisions', intervalMs: INTERVAL_MS, work, log: options.log });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** How many calls wait. */
  get size(): number {
    return [...this.#waiting.values()].reduce((sum, calls) => sum + calls.size, 0);
  }

  /** Resolves when the request is over, or the signal is aborted. */
  async untilOver({ tenant_id, message_id }: MessageRef, requestId: string, signal: AbortSignal): Promise<void> {
    const { bus } = this.#options;
    let resolve: () => void = () => undefined;
    const over = new Promise<void>((settle) => {
      resolve = settle;
    });
    const waiting = this.#waiting.get(requestId) ?? new Set();
    this.#waiting.set(requestId, waiting.add(resolve));
    const check = (): void => void this.#check(tenant_id, requestId);
    const unsubscribe = bus.subscribe(tenant_id, message_id, 0, ({ event }) => {
      if (event.kind === 'changed' || event.kind === 'gap') check();
    });
    using _listener = addAbortListener(signal, resolve);
    if (signal.aborted) resolve();
    // It may have been decided before the subscription began.
    check();
    await over;
    unsubscribe();
    waiting.delete(resolve);
    if (waiting.size === 0) this.#waiting.delete(requestId);
  }

  async #check(tenantId: string, requestId: string): Promise<void> {
    const { db, log } = this.#options;
    try {
      if (!(await isOpenRequest(db, tenantId, requestId))) this.#tell(requestId);
    } catch (error) {
      // The next look finds it.
      log.warn({ err: errorMessage(error), input_request_id: requestId }, 'a decision could not be read');
    }
  }

  async #look(): Promise<void> {
    if (this.#waiting.size === 0) {
      this.#lookedAt = null;
      return;
    }
    const { now, requestIds } = await decidedSince(this.#options.db, this.#options.meshId, this.#lookedAt);
    this.#lookedAt = now;
    for (const requestId of requestIds) this.#tell(requestId);
  }

  #tell(requestId: string): void {
    for (const resolve of this.#waiting.get(requestId) ?? []) resolve();
  }
}
