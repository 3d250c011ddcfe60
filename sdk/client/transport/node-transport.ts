import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { secureContextFor } from '../../tls.js';
import { ClientClosedError, UnreachableError } from '../api/errors.js';
import {
  type Answer,
  type RequestOptions,
  SILENCE_MS,
  successful,
  type Transport,
  urlOf,
  writtenRequest,
} from './transport.js';

/** The transport of Node: keeps connections open, and trusts the platform's certificate authority. */
export class NodeTransport implements Transport {
  readonly baseUrl: string;
  readonly #agent: HttpAgent;
  readonly #request: typeof httpRequest;
  readonly #inFlight = new Set<() => void>();
  #isClosed = false;

  /** @param ca certificate authority in PEM, trusted in addition to the default ones */
  constructor(baseUrl: string, ca?: string) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    const isTls = new URL(this.baseUrl).protocol === 'https:';
    const tls = ca === undefined ? {} : { secureContext: secureContextFor(ca) };
    this.#agent = isTls ? new HttpsAgent({ keepAlive: true, ...tls }) : new HttpAgent({ keepAlive: true });
    this.#request = isTls ? httpsRequest : httpRequest;
  }

  async request(path: string, options: RequestOptions = {}): Promise<Answer> {
    const url = urlOf(this.baseUrl, path);
    const written = writtenRequest(path, options);
    options.signal?.throwIfAborted();
    if (this.#isClosed) throw new ClientClosedError(url);
    const response = await this.#send(url, options, written).catch((error: unknown) => {
      throw options.signal?.aborted ? options.signal.reason : new UnreachableError(url, error);
    });
    return successful({
      url,
      status: response.statusCode ?? 0,
      header: (name) => headerOf(response, name),
      body: bodyOf(response, url, options.signal),
      discard: () => response.destroy(),
    });
  }

  close(): void {
    this.#isClosed = true;
    if (this.#inFlight.size === 0) this.#agent.destroy();
  }

  destroy(): void {
    this.#isClosed = true;
    for (const cut of this.#inFlight) cut();
    this.#agent.destroy();
  }

  #send(
    url: string,
    options: RequestOptions,
    { headers, text }: ReturnType<typeof writtenRequest>,
  ): Promise<IncomingMessage> {
    const body = text === undefined ? undefined : Buffer.from(text);
    return new Promise((resolve, reject) => {
      const request = this.#request(url, {
        agent: this.#agent,
        method: options.method ?? 'POST',
        headers: { ...(body && { 'content-length': body.length }), ...headers },
      });
      let response: IncomingMessage | undefined;
      // Where the whole answer is there but unread, Node would emit the error on the socket when nobody listens any more.
      const end = (why: string) => void request.destroy(response?.complete ? undefined : new Error(why));
      const cut = () => end('the client is closed');
      this.#inFlight.add(cut);
      // Not as an option: Node would give the signal to the socket, which outlives the request and serves others.
      const abort = () => end('aborted');
      options.signal?.addEventListener('abort', abort);
      request.setTimeout(options.silenceMs ?? SILENCE_MS, () => end('the platform is silent'));
      request.on('error', reject);
      request.once('response', (received) => {
        response = received.on('error', () => undefined); // between two reads nobody waits for it: the next read reports it
        resolve(received);
      });
      request.once('close', () => {
        this.#inFlight.delete(cut);
        options.signal?.removeEventListener('abort', abort);
        if (this.#isClosed && this.#inFlight.size === 0) this.#agent.destroy();
      });
      request.end(body);
    });
  }
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

async function* bodyOf(response: IncomingMessage, url: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* response as AsyncIterable<Buffer>;
  } catch (error) {
    throw signal?.aborted ? signal.reason : new UnreachableError(url, error);
  }
}
