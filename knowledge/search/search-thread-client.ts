import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import type { Logger } from '../../runtime/logger.js';
import { workerFile } from '../../runtime/worker-file.js';
import type { BaseKey, IndexMemory } from './index/index-cache.js';
import type { SearchThreadData, ThreadQuestions, ThreadReply, ThreadRequest } from './search-thread.js';
import type { SearchReply, SearchRequest } from './searcher.js';

/** Searches in the thread at once: many more than those that compare (searcher.ts), because the others wait for an index to be read. */
const AT_ONCE = 64;
/** Of one tenant at once; those that wait of one tenant, and how long in milliseconds. 429 beyond. */
const AT_ONCE_PER_TENANT = 4;
const WAITING_MAX = 200;
const WAIT_MAX_MS = 20_000;

/** The turns of the tenants at searching, or at embedding what they search for. @param limit of all tenants together */
export function turnsOfSearches(limit: number): FairSemaphore {
  return new FairSemaphore({
    limit,
    perKey: AT_ONCE_PER_TENANT,
    waitingMax: WAITING_MAX,
    waitMaxMs: WAIT_MAX_MS,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many searches at once.', { headers: { 'Retry-After': '2' } }),
  });
}

/** Whoever waits for an answer of the thread. */
interface Pending {
  resolve(gives: unknown): void;
  reject(error: Error): void;
}

const NOTHING: IndexMemory = { bases: 0, bytes: 0 };

/** The thread that searches. It starts with the first search; when it dies its searches fail, and the next one starts another. */
export class SearchThread {
  readonly #turns = turnsOfSearches(AT_ONCE);
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #nextId = 1;

  constructor(
    private readonly data: SearchThreadData,
    private readonly log: Pick<Logger, 'error'>,
  ) {}

  /** @throws PlatformError `RATE_LIMITED` at the bound of searches, `SERVICE_UNAVAILABLE` when the thread dies */
  search(request: SearchRequest, dimensions: number): Promise<SearchReply> {
    return this.#turns.run(request.tenantId, () => this.#ask('search', { request, dimensions }));
  }

  /** Drops what is kept in memory of a knowledge base. Never rejects: a thread that dies keeps nothing. */
  async forget(key: BaseKey): Promise<void> {
    if (this.#worker) await this.#ask('forget', key).catch(() => undefined);
  }

  /** What is kept in memory. */
  memory(): Promise<IndexMemory> {
    return this.#worker ? this.#ask('memory', undefined) : Promise.resolve(NOTHING);
  }

  /** Ends the thread; searches that run fail. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #ask<Name extends keyof ThreadQuestions>(
    name: Name,
    asks: ThreadQuestions[Name]['asks'],
  ): Promise<ThreadQuestions[Name]['gives']> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve: resolve as Pending['resolve'], reject });
      this.#start().postMessage({ id, name, asks } as ThreadRequest);
    });
  }

  #start(): Worker {
    if (this.#worker) {
      this.#worker.ref();
      return this.#worker;
    }
    const worker = new Worker(workerFile('./search-thread.js', import.meta.url), { workerData: this.data });
    worker.on('message', (reply: ThreadReply) => this.#onReply(worker, reply));
    worker.on('error', (error: Error) => this.log.error({ err: error.message }, 'the search thread failed'));
    worker.on('exit', () => this.#onExit(worker));
    this.#worker = worker;
    return worker;
  }

  #onReply(worker: Worker, reply: ThreadReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) worker.unref(); // an idle thread does not keep the process alive
    if ('gives' in reply) {
      pending?.resolve(reply.gives);
      return;
    }
    const { code, message, headers, cause } = reply.failure;
    // The cause is for the log: it may quote the database.
    pending?.reject(new PlatformError(code, message, { headers, ...(cause !== undefined && { cause }) }));
  }

  #onExit(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined;
    for (const { reject } of this.#pending.values())
      reject(new PlatformError('SERVICE_UNAVAILABLE', 'The search was interrupted.'));
    this.#pending.clear();
  }
}
