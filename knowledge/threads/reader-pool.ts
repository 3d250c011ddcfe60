import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { unlessAborted } from '../../runtime/unless-aborted.js';
import { workerFile } from '../../runtime/worker-file.js';
import { ParseError } from '../parse/parse-error.js';
import type { ReadAnswer, ReadDocument, ReadRequest } from './reading.js';

const THREAD = workerFile('./reader-thread.js', import.meta.url);
/** Threads that read at once, and of these at most so many for one tenant. */
const THREADS = 3;
const OF_TENANT = 2;
const WAITING_MAX = 1_000;
/** An idle thread keeps the libraries that it has loaded for so long. */
const IDLE_MS = 60_000;
const LIMITS_OF_THREAD = { maxOldGenerationSizeMb: 768, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 };
/** Buffers are outside of a thread's heap limit: a document for which the process grows by more ends its thread. */
const GROWTH_BYTES_MAX = 1024 * 1024 * 1024;
const LOOK_EVERY_MS = 50;
/** The error of a thread beyond its heap limit. */
const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY';

export interface ReaderPoolOptions {
  /** For one document, in milliseconds; 60000 by default. */
  timeoutMs?: number;
}

const tooComplex = (what: string) => new ParseError('TOO_COMPLEX', `Reading the document took too much ${what}.`);

/**
 * Threads in which documents are read, so that neither a large document nor a hostile one is felt by the rest of the process. A document that
 * takes too much time or memory ends its thread, and nothing else.
 */
export class ReaderPool {
  readonly #idle: { thread: Worker; timer: NodeJS.Timeout }[] = [];
  readonly #turns = new FairSemaphore({
    limit: THREADS,
    perKey: OF_TENANT,
    waitingMax: WAITING_MAX,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many documents wait to be read.'),
  });
  readonly #timeoutMs: number;
  #closed = false;

  constructor(options: ReaderPoolOptions = {}) {
    this.#timeoutMs = options.timeoutMs ?? 60_000;
  }

  /**
   * Reads a document in the turn of its tenant.
   * @throws ParseError when the document cannot be read, the signal's reason once it is aborted
   */
  read(tenantId: string, request: ReadRequest, signal: AbortSignal): Promise<ReadDocument> {
    const reading = this.#turns.run(tenantId, async () => {
      signal.throwIfAborted();
      const thread = this.#take();
      let reusable = false;
      try {
        const answer = await this.#ask(thread, request, signal);
        reusable = !(answer.ok === false && answer.code === 'TOO_COMPLEX');
        if (answer.ok) return answer.read;
        throw new ParseError(answer.code, answer.message);
      } finally {
        if (reusable) this.#keep(thread);
        else await thread.terminate();
      }
    });
    return unlessAborted(reading, signal);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      this.#idle.splice(0).map(({ thread, timer }) => {
        clearTimeout(timer);
        return thread.terminate();
      }),
    );
  }

  #take(): Worker {
    const idle = this.#idle.pop();
    if (idle) {
      clearTimeout(idle.timer);
      return idle.thread;
    }
    const thread = new Worker(THREAD, { resourceLimits: LIMITS_OF_THREAD, stdout: true, stderr: true });
    thread.unref();
    // Libraries write warnings about documents; a thread that ends between two documents is replaced.
    thread.stdout.resume();
    thread.stderr.resume();
    thread.on('error', () => this.#drop(thread));
    return thread;
  }

  #drop(thread: Worker): void {
    const place = this.#idle.findIndex((idle) => idle.thread === thread);
    if (place >= 0) clearTimeout(this.#idle.splice(place, 1)[0]?.timer);
  }

  #keep(thread: Worker): void {
    if (this.#closed) return void thread.terminate();
    const timer = setTimeout(() => {
      this.#drop(thread);
      void thread.terminate();
    }, IDLE_MS);
    timer.unref();
    this.#idle.push({ thread, timer });
  }

  async #ask(thread: Worker, request: ReadRequest, signal: AbortSignal): Promise<ReadAnswer> {
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const before = process.memoryUsage.rss();
    const clock = setTimeout(() => over.abort(tooComplex('time')), this.#timeoutMs);
    const memory = setInterval(() => {
      if (process.memoryUsage.rss() - before > GROWTH_BYTES_MAX) over.abort(tooComplex('memory'));
    }, LOOK_EVERY_MS);
    try {
      const exited = once(thread, 'exit', { signal: stop }).then(() => {
        throw new Error('the thread that reads documents ended');
      });
      const answered = once(thread, 'message', { signal: stop });
      for (const waiting of [exited, answered]) waiting.catch(() => undefined); // the race below reports the first
      thread.postMessage(request);
      const [answer] = await Promise.race([answered, exited]);
      return answer as ReadAnswer;
    } catch (error) {
      stop.throwIfAborted();
      // Any other end of a thread is no fault of the document.
      throw (error as { code?: string }).code === OUT_OF_MEMORY ? tooComplex('memory') : error;
    } finally {
      over.abort();
      clearTimeout(clock);
      clearInterval(memory);
    }
  }
}
