import type { TokenIssuer } from '../../auth/tokens.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Outbound, OutboundStream } from '../../http/outbound.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { type HostedAnswer, readAnswer } from './answer.js';
import { dispatchBody, hostedHeaders, taskBody } from './request.js';

/** Of a JSON answer; a longer one is not read. */
export const ANSWER_BYTES_MAX = 2 * 1024 * 1024;
/** Of a whole stream with the JSON around its small pieces. */
const STREAM_BYTES_MAX = 64 * 1024 * 1024;
const ASK_TIMEOUT_MS = 10_000;

/** An answer of the agent's web server that holds no A2A answer: 4xx or 5xx. */
export class HttpRefusal extends Error {
  constructor(readonly status: number) {
    super(`The agent answered HTTP ${status}.`);
    this.name = 'HttpRefusal';
  }
}

/** The HTTP side of one dispatch to a hosted agent. Everything rejects with OutboundError, HttpRefusal or the token's error. */
export class HostedCall {
  readonly open: OpenDispatch;
  readonly #outbound: Pick<Outbound, 'request' | 'stream'>;
  readonly #tokens: Pick<TokenIssuer, 'issueDispatchToken'>;

  constructor(
    open: OpenDispatch,
    outbound: Pick<Outbound, 'request' | 'stream'>,
    tokens: Pick<TokenIssuer, 'issueDispatchToken'>,
  ) {
    this.open = open;
    this.#outbound = outbound;
    this.#tokens = tokens;
  }

  /** A fresh proof for the agent: each lives for `LIMITS.hostedTokenSeconds`. */
  token(): Promise<string> {
    const { tenant_id, instance_id, dispatch_id } = this.open;
    return this.#tokens.issueDispatchToken({ tenant_id, instance_id, dispatch_id });
  }

  /** Posts the dispatch and resolves at the answer's headers. The caller's signal is the deadline. */
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

  /** Asks about the agent's own task, or to cancel it. */
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
    return answer.truncated ? { kind: 'garbage', problem: 'is larger than 2 MiB' } : readAnswer(answer.body.toString());
  }
}
