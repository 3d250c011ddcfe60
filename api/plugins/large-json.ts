import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { ErrorCode } from '../../contracts/errors.js';
import { PlatformError } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { workerFile } from '../../runtime/worker-file.js';

/** A long string of a JSON value, in UTF-8. */
export interface LongText {
  /** Where it stands. */
  path: string[];
  bytes: Uint8Array;
}

export interface ThreadTask {
  id: number;
  bytes: Uint8Array;
}
export type ThreadAnswer =
  | { id: number; isJson: false }
  /** `rest` is `{"value": …}` with null in the places of the long texts. */
  | { id: number; isJson: true; rest: string; texts: LongText[] }
  | { id: number; refused: { code: ErrorCode; message: string } };

interface Pending {
  resolve(answer: ThreadAnswer): void;
  reject(error: Error): void;
}

/** An idle thread is kept for so long. */
const IDLE_MS = 60_000;
/** Enough for the largest body with the most values that it may have. */
const HEAP_MB = 512;

function put(root: object, path: readonly string[], text: string): void {
  const last = path.at(-1) as string;
  const holder = path.slice(0, -1).reduce<object>((at, key) => (at as Record<string, object>)[key] as object, root);
  (holder as Record<string, unknown>)[last] = text;
}

/**
 * Parses large JSON texts in a thread: one of 30 MB takes 100 ms, in which the process would answer nobody. Long strings come back as bytes that
 * are decoded one after the other, and the rest is bounded, so that no step on the event loop takes long. large-bodies.ts bounds how many bodies
 * there are at once.
 */
export class LargeJson {
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 1;

  constructor(private readonly log: Pick<Logger, 'error'>) {}

  /** @returns undefined for bytes that are not JSON in UTF-8 @throws PlatformError `BAD_REQUEST`, `PAYLOAD_TOO_LARGE` */
  async parse(bytes: Buffer): Promise<{ value: unknown } | undefined> {
    const answer = await this.#ask(bytes);
    if ('refused' in answer) throw new PlatformError(answer.refused.code, answer.refused.message);
    if (!answer.isJson) return undefined;
    const root = JSON.parse(answer.rest) as { value: unknown };
    for (const { path, bytes: text } of answer.texts) {
      await nextTurn();
      put(root, path, Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString());
    }
    return root;
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#worker?.terminate();
  }

  #ask(bytes: Buffer): Promise<ThreadAnswer> {
    clearTimeout(this.#idle);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      // Its memory moves over, where nothing else is in it.
      const moved = bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer as ArrayBuffer] : [];
      this.#start().postMessage({ id, bytes } satisfies ThreadTask, moved);
    });
  }

  #start(): Worker {
    if (this.#worker) {
      this.#worker.ref();
      return this.#worker;
    }
    const file = workerFile('./large-json-thread.js', import.meta.url);
    const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } });
    worker.on('message', (answer: ThreadAnswer) => this.#onAnswer(worker, answer));
    worker.on('error', (error: Error) =>
      this.log.error({ err: error.message }, 'the thread that parses bodies failed'),
    );
    worker.on('exit', () => this.#onExit(worker));
    this.#worker = worker;
    return worker;
  }

  #onAnswer(worker: Worker, answer: ThreadAnswer): void {
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if (this.#pending.size === 0) {
      worker.unref(); // an idle thread does not keep the process alive
      this.#idle = setTimeout(() => {
        this.#worker = undefined;
        void worker.terminate();
      }, IDLE_MS);
      this.#idle.unref();
    }
    pending?.resolve(answer);
  }

  #onExit(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#pending.values())
      reject(new PlatformError('SERVICE_UNAVAILABLE', 'The body could not be parsed. Try again.'));
    this.#pending.clear();
  }
}
