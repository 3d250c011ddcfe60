import { setTimeout as delay } from 'node:timers/promises';
import { NativeConnection, type NativeConnectionOptions, TransportError } from '@temporalio/worker';
import {
  checkNamespace,
  isUnavailable,
  type TemporalTarget,
  TemporalUnavailable,
} from '../messages/supervise/temporal-availability.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { settledWithin } from '../runtime/promises/settled-within.js';

const RETRY_MS = 1_000;
/** How long a stop waits for an attempt that is under way. */
const ATTEMPT_END_MS = 6_000;
const REMEDY = 'start Temporal, or check TEMPORAL_ADDRESS; quick messages are answered meanwhile, the others wait';

type Step = (connection: NativeConnection) => Promise<void>;

/**
 * What of the start needs Temporal, step by step. While Temporal is unavailable, the first step that failed and those behind it are tried
 * again in the background, and the process starts without them.
 */
export class TemporalStart {
  readonly #stopped = new AbortController();
  readonly #waiting: (() => Promise<void>)[] = [];
  #connection: NativeConnection | undefined;
  #retrying: Promise<void> = Promise.resolve();
  #isRetrying = false;
  #stopping: Promise<unknown> | undefined;
  #reported: 'unavailable' | 'refused' | undefined;

  constructor(
    private readonly link: Pick<TemporalLink, 'prepare'>,
    private readonly target: TemporalTarget & { options: NativeConnectionOptions },
    private readonly log: Logger,
  ) {}

  /** Whether every step so far has been done. */
  get isDone(): boolean {
    return this.#waiting.length === 0;
  }

  /** Connects; the first step. @throws when Temporal refuses, which no repetition mends */
  connect(): Promise<void> {
    return this.#do(async () => {
      await this.link.prepare();
      this.#connection = await NativeConnection.connect(this.target.options);
    });
  }

  /** Does a step, now if Temporal answers, else as soon as it does. @throws as `connect`, and what is wrong with the step itself */
  run(step: Step): Promise<void> {
    return this.#do(async () => {
      if (this.#isRetrying) await this.check();
      if (!this.#connection) throw new Error('Steps follow connect().');
      await step(this.#connection);
    });
  }

  /** Resolves when Temporal answers for the namespace. A worker that cannot be created leaves threads behind, so this is asked before. */
  check(): Promise<void> {
    return checkNamespace(this.target);
  }

  /** Tries no further; resolves when the attempt under way has ended, or takes too long. A second call shares the wait. */
  stop(): Promise<unknown> {
    this.#stopped.abort();
    this.#stopping ??= settledWithin(this.#retrying, ATTEMPT_END_MS);
    return this.#stopping;
  }

  /** Stops and closes the connection. The workers have to be stopped before. */
  async close(): Promise<void> {
    await this.stop();
    await this.#connection?.close();
  }

  async #do(step: () => Promise<void>): Promise<void> {
    if (this.isDone) {
      const failure = await this.#attempt(step);
      if (!failure) return;
      if (!(failure instanceof TemporalUnavailable)) throw failure;
      this.#report(failure);
    }
    this.#waiting.push(step);
    if (!this.#isRetrying) this.#retrying = this.#retry();
  }

  /** @returns why it failed */
  async #attempt(step: () => Promise<void>): Promise<unknown> {
    try {
      await step();
      return undefined;
    } catch (error) {
      if (isUnavailable(error)) return new TemporalUnavailable(errorMessage(error), { cause: error });
      // The worker's errors have no status code: whether Temporal refuses is asked again.
      if (!(error instanceof TransportError)) return error;
      return this.check().then(
        () => new TemporalUnavailable(errorMessage(error), { cause: error }),
        (reason: unknown) => reason,
      );
    }
  }

  async #retry(): Promise<void> {
    const { signal } = this.#stopped;
    const pause = () => delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
    this.#isRetrying = true;
    await pause();
    for (let step = this.#waiting[0]; step && !signal.aborted; step = this.#waiting[0]) {
      const failure = await this.#attempt(step);
      if (!failure) {
        this.#waiting.shift();
        continue;
      }
      this.#report(failure);
      await pause();
    }
    this.#isRetrying = false;
    if (signal.aborted) return;
    this.#reported = undefined;
    const { options, namespace } = this.target;
    this.log.info({ address: options.address, namespace }, 'Temporal can be used; the start is complete');
  }

  /** A line when it begins to fail, and when the kind of failure changes. */
  #report(failure: unknown): void {
    const kind = failure instanceof TemporalUnavailable ? 'unavailable' : 'refused';
    if (kind === this.#reported) return;
    this.#reported = kind;
    const { options, namespace } = this.target;
    const fields = { err: errorMessage(failure), address: options.address, namespace };
    if (kind === 'refused') this.log.error(fields, 'a step of the start that needs Temporal fails; trying again');
    else this.log.warn({ ...fields, remedy: REMEDY }, 'Temporal cannot be used yet; trying again');
  }
}
