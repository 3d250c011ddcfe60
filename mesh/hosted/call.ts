import type { TokenIssuer } from '../../auth/tokens.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Outbound, OutboundResponse, OutboundStream } from '../../http/outbound.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { type HostedAnswer, readAnswer } from './answer.js';
import { readRefusal, refusalFrom } from './refusal.js';
import { dispatchBody, type HostedRequest, hostedHeaders, taskBody } from './request.js';

/** Limit of a JSON answer; a longer one is not read. */
export const ANSWER_BYTES_MAX = 2 * 1024 * 1024;
/** Limit of a whole stream, with the JSON around its small pieces. */
const STREAM_BYTES_MAX = 64 * 1024 * 1024;
const ASK_TIMEOUT_MS = 10_000;

/** Reads a JSON answer that was read up to `ANSWER_BYTES_MAX`. */
export function readWhole({ body, truncated }: Pick<OutboundResponse, 'body' | 'truncated'>): HostedAnswer {
  return truncated ? { kind: 'invalid', problem: 'is larger than 2 MiB' } : readAnswer(body.toString());
}

/** What carries requests to hosted agents. */
export interface HostedClient {
  outbound: Pick<Outbound, 'request' | 'stream'>;
  /** Signs the agent's proof of who asks; each lives for `LIMITS.hostedTokenSeconds`. */
  tokens: Pick<TokenIssuer, 'issueDispatchToken'>;
}

/** The HTTP requests of one dispatch to a hosted agent. They reject with OutboundError, HttpRefusal or the error of signing. */
export class HostedCall {
  readonly open: HostedRequest;
  readonly #client: HostedClient;

  constructor(open: HostedRequest, client: HostedClient) {
    this.open = open;
    this.#client = client;
  }

  /** Signs a token for the agent. */
  token(): Promise<string> {
    return this.#client.tokens.issueDispatchToken(this.open);
  }

  /** Posts the dispatch and resolves at the answer's headers. The signal is the deadline. */
  async send(token: string, signal: AbortSignal): Promise<OutboundStream> {
    const answer = await this.#client.outbound.stream(this.open.public_url ?? '', {
      method: 'POST',
      headers: hostedHeaders(this.open, token),
      body: JSON.stringify(dispatchBody(this.open)),
      headersTimeoutMs: LIMITS.deadlineMsMax,
      maxResponseBytes: STREAM_BYTES_MAX,
      signal,
    });
    if (answer.status < 400) return answer;
    throw await readRefusal(answer);
  }

  /** Asks for the agent's own task, or asks to cancel it. */
  async ask(method: 'get' | 'cancel', taskId: string, signal?: AbortSignal): Promise<HostedAnswer> {
    const answer = await this.#client.outbound.request(this.open.public_url ?? '', {
      method: 'POST',
      headers: hostedHeaders(this.open, await this.token()),
      body: JSON.stringify(taskBody(this.open, method, taskId)),
      timeoutMs: ASK_TIMEOUT_MS,
      maxResponseBytes: ANSWER_BYTES_MAX,
      signal,
    });
    if (answer.status >= 400) throw refusalFrom(answer.status, answer.headers, answer.body);
    return readWhole(answer);
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
