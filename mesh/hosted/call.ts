import type { TokenIssuer } from '../../auth/tokens.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Outbound, OutboundStream } from '../../http/outbound.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { type HostedAnswer, readAnswer } from './answer.js';
import { dispatchBody, type HostedRequest, hostedHeaders, taskBody } from './request.js';

/** Limit of a JSON answer; a longer one is not read. */
export const ANSWER_BYTES_MAX = 2 * 1024 * 1024;
/** Limit of a whole stream, with the JSON around its small pieces. */
const STREAM_BYTES_MAX = 64 * 1024 * 1024;
const ASK_TIMEOUT_MS = 10_000;

/** The agent answered HTTP 4xx or 5xx instead of an A2A answer. */
export class HttpRefusal extends Error {
  constructor(readonly status: number) {
    super(`The agent answered HTTP ${status}.`);
    this.name = 'HttpRefusal';
  }
}

/** The HTTP requests of one dispatch to a hosted agent. They reject with OutboundError, HttpRefusal or the error of signing. */
export class HostedCall {
  readonly open: HostedRequest;
  readonly #outbound: Pick<Outbound, 'request' | 'stream'>;
  readonly #tokens: Pick<TokenIssuer, 'issueDispatchToken'>;

  constructor(
    open: HostedRequest,
    outbound: Pick<Outbound, 'request' | 'stream'>,
    tokens: Pick<TokenIssuer, 'issueDispatchToken'>,
  ) {
    this.open = open;
    this.#outbound = outbound;
    this.#tokens = tokens;
  }

  /** Signs a token for the agent; it is valid for `LIMITS.hostedTokenSeconds`. */
  token(): Promise<string> {
    const { tenant_id, instance_id, dispatch_id } = this.open;
    return this.#tokens.issueDispatchToken({ tenant_id, instance_id, dispatch_id });
  }

  /** Posts the dispatch and resolves at the answer's headers. The signal is the deadline. */
  async send(token: string, signal: AbortSignal): Promise<OutboundStream> {
    const answer = await this.#outbound.stream(this.open.public_url ?? '', {
      method: 'POST',
      headers: hostedHeaders(this.open, token),
      body: JSON.stringify(dispatchBody(this.open)),
      headersTimeoutMs: LIMITS.deadlineMsMax,
      maxResponseBytes: STREAM_BYTES_MAX,
      signal,
    });
    if (answer.status < 400) return answer;
    answer.cancel();
    throw new HttpRefusal(answer.status);
  }

  /** Asks for the agent's own task, or asks to cancel it. */
  async ask(method: 'get' | 'cancel', taskId: string, signal?: AbortSignal): Promise<HostedAnswer> {
    const answer = await this.#outbound.request(this.open.public_url ?? '', {
      method: 'POST',
      headers: hostedHeaders(this.open, await this.token()),
      body: JSON.stringify(taskBody(this.open, method, taskId)),
      timeoutMs: ASK_TIMEOUT_MS,
      maxResponseBytes: ANSWER_BYTES_MAX,
      signal,
    });
    if (answer.status >= 400) throw new HttpRefusal(answer.status);
    return answer.truncated ? { kind: 'invalid', problem: 'is larger than 2 MiB' } : readAnswer(answer.body.toString());
  }

  /** Asks the agent to cancel its task, best effort: its answer is ignored either way. Never rejects. */
  async cancel(taskId: string | undefined, log: Pick<Logger, 'info'>): Promise<void> {
    if (taskId === undefined) return;
    try {
      await this.ask('cancel', taskId);
    } catch (error) {
      const { dispatch_id, instance_id } = this.open;
      log.info({ err: errorMessage(error), dispatch_id, instance_id }, 'hosted agent could not be asked to cancel');
    }
  }
}
