import type { AgentLog } from '../log.js';
import { AgentError } from './agent-error.js';

/** Limit on the kinds that are remembered: a foreign server may answer with any number of codes. */
const KINDS_MAX = 64;

/** Reports errors to the log and to `onError`: each kind once, until the connection has been stable for a while. */
export class ErrorReporter {
  readonly #log: AgentLog;
  readonly #onError: ((error: AgentError) => unknown) | undefined;
  readonly #reported = new Set<string>();
  #last: AgentError | null = null;

  constructor(log: AgentLog, onError?: (error: AgentError) => unknown) {
    this.#log = log;
    this.#onError = onError;
  }

  /** The latest error, whether it was reported or not. */
  get last(): AgentError | null {
    return this.#last;
  }

  /**
   * Reports a temporary error.
   * @param scope errors with the same code and scope are one kind
   * @param text what it means for the agent
   * @returns whether it was the first of its kind, and so was logged
   */
  warn(error: AgentError, scope = '', text = 'agent error'): boolean {
    this.#last = error;
    const kind = `${error.code} ${scope}`;
    if (this.#reported.has(kind) || this.#reported.size >= KINDS_MAX) return false;
    this.#reported.add(kind);
    this.#log.warn({ error: error.message, code: error.code }, text);
    this.#notify(error);
    return true;
  }

  /** Reports the error that stopped the agent. */
  stopped(reason: unknown): void {
    const error = reason instanceof AgentError ? reason : new AgentError('INTERNAL', String(reason), { cause: reason });
    this.#log.error({ error: error.message, code: error.code }, 'agent stopped');
    this.#notify(error);
  }

  /** Forgets the reported kinds, so that later errors are reported again. */
  reset(): void {
    this.#reported.clear();
  }

  #notify(error: AgentError): void {
    void this.#callOnError(error).catch((cause: unknown) => this.#log.error({ error: String(cause) }, 'onError threw'));
  }

  async #callOnError(error: AgentError): Promise<void> {
    await this.#onError?.(error);
  }
}
