import type { TokenIssuer } from '../../auth/tokens.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Outbound, OutboundResponse, OutboundStream } from '../../http/outbound.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { unlessAborted } from '../../runtime/promises/unless-aborted.js';
import type { AgentCredentials, Proof } from './agent-credentials.js';
import { type HostedAnswer, readAnswer } from './answer.js';
import { readRefusal, refusalFrom } from './refusal.js';
import { callUrl, dispatchBody, type HostedRequest, hostedHeaders, taskBody } from './request.js';

/** Limit of a JSON answer; a longer one is not read. */
export const ANSWER_BYTES_MAX = 2 * 1024 * 1024;
/** Limit of a whole stream in bytes, including the JSON around each chunk. */
const STREAM_BYTES_MAX = 64 * 1024 * 1024;
const ASK_TIMEOUT_MS = 10_000;

/** Reads a JSON answer that was read up to `ANSWER_BYTES_MAX`. */
export function readWhole({ body, truncated }: Pick<OutboundResponse, 'body' | 'truncated'>): HostedAnswer {
  return truncated ? { kind: 'invalid', problem: 'is larger than 2 MiB' } : readAnswer(body.toString());
}

/** What carries requests to hosted agents. */
export interface HostedClient {
  outbound: Pick<Outbound, 'request' | 'stream'>;
  /** Signs the platform's own tokens for agents; each is valid for `LIMITS.hostedTokenSeconds`. */
  tokens: Pick<TokenIssuer, 'issueDispatchToken'>;
  credentials: Pick<AgentCredentials, 'proofFor'>;
}

/** The HTTP requests of one dispatch to a hosted agent. They reject with OutboundError, HttpRefusal, CredentialError or the error of signing. */
export class HostedCall {
  readonly open: HostedRequest;
  /** Whether a byte of a request may have been sent. */
  hasBegun = false;
  readonly #client: HostedClient;
  /** The proof that was sent last. */
  #proof: Proof | undefined;

  constructor(open: HostedRequest, client: HostedClient) {
    this.open = open;
    this.#client = client;
  }

  /** Signs a token for the agent. */
  token(): Promise<string> {
    return this.#client.tokens.issueDispatchToken(this.open);
  }

  /** Posts the dispatch and resolves at the answer's headers. The signal aborts it at its deadline or when it is stopped. @param token from `token()` */
  async send(token: string, signal: AbortSignal): Promise<OutboundStream> {
    const send = (proof: Proof) =>
      this.#client.outbound.stream(callUrl(this.open), {
        method: 'POST',
        headers: hostedHeaders(this.open, proof),
        body: JSON.stringify(dispatchBody(this.open)),
        headersTimeoutMs: LIMITS.deadlineMsMax,
        maxResponseBytes: STREAM_BYTES_MAX,
        signal,
      });
    const answer = await this.#proven(() => token, signal, send);
    if (answer.status < 400) return answer;
    throw await readRefusal(answer);
  }

  /** Asks for the agent's own task, or asks to cancel it. */
  async ask(method: 'get' | 'cancel', taskId: string, signal?: AbortSignal): Promise<HostedAnswer> {
    const ask = (proof: Proof) =>
      this.#client.outbound.request(callUrl(this.open), {
        method: 'POST',
        headers: hostedHeaders(this.open, proof),
        body: JSON.stringify(taskBody(this.open, method, taskId)),
        timeoutMs: ASK_TIMEOUT_MS,
        maxResponseBytes: ANSWER_BYTES_MAX,
        signal,
      });
    const answer = await this.#proven(() => this.token(), signal, ask);
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
      const err = this.withoutProof(errorMessage(error));
      log.info({ err, dispatch_id, instance_id }, 'hosted agent could not be asked to cancel');
    }
  }

  /** Removes the token or key that was sent from a text of the agent: some agents repeat it when they refuse it. */
  withoutProof(text: string): string {
    if (!this.#proof) return text;
    const { value } = this.#proof;
    return text.replaceAll(value, '…').replaceAll(value.slice(value.lastIndexOf(' ') + 1), '…');
  }

  /** Sends a request with its proof. If the agent refuses an access token, fetches another and sends the request once more. */
  async #proven<T extends { status: number; cancel?: () => void }>(
    own: () => string | Promise<string>,
    signal: AbortSignal | undefined,
    send: (proof: Proof) => Promise<T>,
  ): Promise<T> {
    const proof = await this.#prove(own, signal);
    this.hasBegun = true;
    const answer = await send(proof);
    if (answer.status !== 401 || proof.token === undefined) return answer;
    answer.cancel?.();
    return send(await this.#prove(own, signal, proof));
  }

  async #prove(own: () => string | Promise<string>, signal?: AbortSignal, refused?: Proof): Promise<Proof> {
    const proof = this.#client.credentials.proofFor(this.open, own, refused);
    this.#proof = await (signal ? unlessAborted(proof, signal) : proof);
    return this.#proof;
  }
}
