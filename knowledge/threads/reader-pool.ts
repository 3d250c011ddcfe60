import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { unlessAborted } from '../../runtime/promises/unless-aborted.js';
import { workerFile } from '../../runtime/worker-file.js';
import { ParseError } from '../parse/parse-error.js';
import { type AnswerPart, NEXT_PART, receiveAnswer } from './answer-parts.js';
import { readAlone } from './read-alone.js';
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
  /** Whether nothing else is done in this process, so that what it grows by is the document's. */
  isAlone?: boolean;
}

const tooComplex = (what: string) => new ParseError('TOO_COMPLEX', `Reading the document took too much ${what}.`);

/** The process grew too much while it read a document, which may not be what it grew by. */
class Grown extends ParseError {
  constructor() {
    super('TOO_COMPLEX', tooComplex('memory').message);
  }
}

/**
 * Threads in which documents are read, so that neither a large document nor a hostile one is felt by the rest of the process. A document that
 * takes too much time or memory ends its thread, and nothing else. Memory outside of heaps is that of the whole process: a document during whose
 * reading it grows too much is read once more in a process of its own, so that none is given up for another one or for an index.
 */
export class ReaderPool {
  readonly #idle: { thread: Worker; timer: NodeJS.Timeout }[] = [];
  readonly #turns = new FairSemaphore({
    limit: THREADS,
    perKey: OF_TENANT,
    waitingMax: WAITING_MAX,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many documents wait to be read.'),
  });
  /** Of documents in a process of their own: together they may take as much memory as one. */
  readonly #aloneTurns = new FairSemaphore({
    limit: 1,
    perKey: 1,
    waitingMax: WAITING_MAX,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many documents wait to be read.'),
  });
  readonly #timeoutMs: number;
  readonly #isAlone: boolean;
  readonly #closing = new AbortController();

  constructor(options: ReaderPoolOptions = {}) {
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#isAlone = options.isAlone ?? false;
  }

  /**
   * Reads a document in the turn of its tenant.
   * @throws ParseError when the document cannot be read, the signal's reason once it is aborted
   */
  async read(tenantId: string, request: ReadRequest, signal: AbortSignal): Promise<ReadDocument> {
    try {
      return await this.#read(tenantId, request, signal);
    } catch (error) {
      if (!(error instanceof Grown) || this.#isAlone) throw error;
      const either = AbortSignal.any([signal, this.#closing.signal]);
      const alone = async (): Promise<ReadDocument> => {
        const answer = await readAlone(request, this.#timeoutMs, either);
        if (answer.ok) return answer.read;
        throw new ParseError(answer.code, answer.message);
      };
      return unlessAborted(this.#aloneTurns.run(tenantId, alone), either);
    }
  }

  #read(tenantId: string, request: ReadRequest, signal: AbortSignal): Promise<ReadDocument> {
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
    this.#closing.abort(new Error('documents are not read any more'));
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
    if (this.#closing.signal.aborted) return void thread.terminate();
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
      if (process.memoryUsage.rss() - before > GROWTH_BYTES_MAX) over.abort(new Grown());
    }, LOOK_EVERY_MS);
    try {
      const exited = once(thread, 'exit', { signal: stop }).then(() => {
        throw new Error('the thread that reads documents ended');
      });
      exited.catch(() => undefined); // the races below report it
      const ask = async (isFirst: boolean): Promise<AnswerPart> => {
        const answered = once(thread, 'message', { signal: stop });
        answered.catch(() => undefined);
        thread.postMessage(isFirst ? request : NEXT_PART);
        const [part] = await Promise.race([answered, exited]);
        return part as AnswerPart;
      };
      return await receiveAnswer(ask);
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
