import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../runtime/errors.js';
import { workerFile } from '../../runtime/worker-file.js';
import type { Embedder } from '../embedder.js';
import { type Lane, LaneQueue } from './lanes.js';
import { LOCAL_DIMENSIONS, LOCAL_MODEL } from './local-model.js';
import type { EmbedReply, EmbedRequest } from './local-thread.js';

/** Texts that wait in one lane, 100 of which take two seconds on one thread. Beyond that the caller is refused. */
const WAITING_MAX = 20_000;
/** One thread less than there are processors, so that other work keeps one. */
const THREADS_MAX = 4;

interface Job {
  text: string;
  resolve(vector: Float32Array): void;
  reject(error: Error): void;
}

const CLOSED = 'it was closed';

function failed(reason: string): PlatformError {
  return new PlatformError('BAD_GATEWAY', `The local embedding model failed: ${reason}.`);
}

/** Resolves when a thread has answered or has ended, within the time of one text and of the start of a thread. */
async function answered(worker: Worker): Promise<void> {
  const either = new AbortController();
  const event = (name: string) => once(worker, name, { signal: either.signal });
  await Promise.race([event('message'), event('exit')]).catch(() => undefined); // its error is the call's
  either.abort();
}

/**
 * Embeds with the local model in worker threads, one text at a time in each, the more urgent first. Threads start with the first call and do
 * not keep the process alive.
 */
export class LocalEmbedder implements Embedder {
  readonly kind = 'local';
  readonly model = LOCAL_MODEL;
  readonly dimensions = LOCAL_DIMENSIONS;
  readonly #threads: number;
  readonly #queue = new LaneQueue<Job>();
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, Job>();
  #closed = false;

  /** @param folder of an installed model: see `isModelInstalled` */
  constructor(
    private readonly folder: string,
    threads = Math.min(THREADS_MAX, availableParallelism() - 1),
  ) {
    this.#threads = Math.max(1, threads);
  }

  /** @throws PlatformError `BAD_GATEWAY` when the model fails, `RATE_LIMITED` when too many texts wait; the signal's reason */
  async embed(texts: readonly string[], signal: AbortSignal, lane: Lane = 'bulk'): Promise<Float32Array[]> {
    signal.throwIfAborted();
    if (this.#closed) throw failed(CLOSED);
    if (this.#queue.waiting(lane) + texts.length > WAITING_MAX)
      throw new PlatformError('RATE_LIMITED', 'Too many texts wait to be embedded.', {
        headers: { 'Retry-After': '5' },
      });
    const jobs: Job[] = [];
    const vectors = texts.map(
      (text) => new Promise<Float32Array>((resolve, reject) => jobs.push({ text, resolve, reject })),
    );
    this.#queue.push(lane, jobs);
    const onAbort = () => {
      for (const job of jobs) job.reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#next();
    try {
      return await Promise.all(vectors);
    } catch (error) {
      this.#queue.remove(lane, new Set(jobs)); // what the others would bring is of no use
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Ends the threads, each after the text that it is at: the model's library ends the whole process where its thread ends under it. Calls that
   * wait are rejected at once.
   */
  async close(): Promise<void> {
    this.#closed = true;
    const atRest = [...this.#busy.keys()].map(answered);
    this.#failAll(CLOSED);
    await Promise.all(atRest);
    await Promise.all(this.#idle.splice(0).map((worker) => worker.terminate()));
  }

  #next(): void {
    while (!this.#queue.isEmpty && !this.#closed) {
      const worker = this.#idle.pop() ?? (this.#busy.size < this.#threads ? this.#start() : undefined);
      if (!worker) return;
      const job = this.#queue.next() as Job;
      this.#busy.set(worker, job);
      worker.ref();
      worker.postMessage({ text: job.text } satisfies EmbedRequest);
    }
  }

  #start(): Worker {
    const worker = new Worker(workerFile('./local-thread.js', import.meta.url), {
      workerData: { folder: this.folder },
    });
    worker.on('message', (reply: EmbedReply) => this.#onReply(worker, reply));
    worker.on('error', (error: Error) => this.#onEnd(worker, error.message));
    worker.on('exit', (code) => this.#onEnd(worker, `its thread ended with ${code}`));
    return worker;
  }

  #onReply(worker: Worker, reply: EmbedReply): void {
    const job = this.#busy.get(worker);
    this.#busy.delete(worker);
    this.#idle.push(worker);
    worker.unref(); // an idle thread does not keep the process alive
    if ('vector' in reply) job?.resolve(reply.vector);
    else job?.reject(failed(reply.error));
    this.#next();
  }

  /** The text that the thread was at fails; the next one gets a new thread. */
  #onEnd(worker: Worker, reason: string): void {
    const job = this.#busy.get(worker);
    this.#busy.delete(worker);
    const at = this.#idle.indexOf(worker);
    if (at >= 0) this.#idle.splice(at, 1);
    job?.reject(failed(reason));
    if (job) this.#next();
  }

  #failAll(reason: string): void {
    for (const job of [...this.#busy.values(), ...this.#queue.clear()]) job.reject(failed(reason));
  }
}
