import type { AgentLog } from '../log.js';
import { AgentError } from './agent-error.js';

/** Kinds of trouble that are told of; the codes of a strange platform may be without end. */
const KINDS_MAX = 64;

/** Tells of trouble in the log and to `onError`: each kind once, until all has been well for a while. */
export class TroubleReporter {
  readonly #log: AgentLog;
  readonly #onError: ((error: AgentError) => unknown) | undefined;
  readonly #told = new Set<string>();
  #last: AgentError | null = null;

  constructor(log: AgentLog, onError?: (error: AgentError) => unknown) {
    this.#log = log;
    this.#onError = onError;
  }

  /** The latest trouble, told of or not. */
  get last(): AgentError | null {
    return this.#last;
  }

  /** Something that may pass. @param about what makes it another kind than its code alone does */
  warn(error: AgentError, about = ''): void {
    this.#last = error;
    const kind = `${error.code} ${about}`;
    if (this.#told.has(kind) || this.#told.size >= KINDS_MAX) return;
    this.#told.add(kind);
    this.#log.warn({ error: error.message, code: error.code }, 'the agent has trouble');
    this.#notify(error);
  }

  /** The agent is over. */
  stopped(reason: unknown): void {
    const error = reason instanceof AgentError ? reason : new AgentError('INTERNAL', String(reason), { cause: reason });
    this.#log.error({ error: error.message, code: error.code }, 'the agent has stopped');
    this.#notify(error);
  }

  /** All is well again: trouble that comes from now on is new. */
  reset(): void {
    this.#told.clear();
  }

  #notify(error: AgentError): void {
    void this.#call(error).catch((cause: unknown) => this.#log.error({ error: String(cause) }, 'onError threw'));
  }

  async #call(error: AgentError): Promise<void> {
    await this.#onError?.(error);
  }
}
