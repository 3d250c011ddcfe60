/** The caller's side of the rows: HTTP with keep-alive, a body of which only the `messageId` changes, every answer checked. */
import { Pool } from 'undici';
import { bodies } from './frames.mjs';

/** More than any row has callers. */
const CONNECTIONS = 64;

const isCompleted = (answer) => answer.result?.status?.state === 'completed';
const isMessage = (answer) => answer.result?.kind === 'message';

/** A pool of connections to one server. */
export class Caller {
  #pool;
  #headers;

  /**
   * @param {string} url
   * @param {string} [token]
   */
  constructor(url, token) {
    this.#pool = new Pool(url, { connections: CONNECTIONS });
    this.#headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  }

  /** @returns a call of `message/send` that ends with the completed task */
  send(agentType, path = '/send') {
    return this.#call(path, bodies('message/send', agentType), isCompleted);
  }

  /** @returns a call of the hosted agent itself */
  ask() {
    return this.#call('/', bodies('message/send', 'echo'), isMessage);
  }

  /** @returns a call of `message/stream`, read to its end; its milliseconds are those until the first byte of the body */
  stream(agentType) {
    const next = bodies('message/stream', agentType);
    return async () => {
      const from = performance.now();
      const { statusCode, body } = await this.#post('/send', next());
      let firstMs;
      let text = '';
      for await (const chunk of body) {
        firstMs ??= performance.now() - from;
        text += chunk;
      }
      const last = text.trimEnd().split('\n').at(-1) ?? '';
      if (statusCode !== 200 || !last.startsWith('data:') || !isCompleted(JSON.parse(last.slice(5)))) {
        throw new Error(`the stream ended with ${statusCode}: ${text}`);
      }
      return firstMs;
    };
  }

  close() {
    return this.#pool.close();
  }

  #post(path, body) {
    return this.#pool.request({ path, method: 'POST', headers: this.#headers, body });
  }

  #call(path, next, isRight) {
    return async () => {
      const { statusCode, body } = await this.#post(path, next());
      const text = await body.text();
      if (statusCode !== 200 || !isRight(JSON.parse(text))) throw new Error(`${path} answered ${statusCode}: ${text}`);
    };
  }
}
