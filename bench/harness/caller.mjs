/** The HTTP caller of the benchmarks: keep-alive, bodies that differ only in their `messageId`, every answer checked. */
import { Pool } from 'undici';
import { bodies } from './frames.mjs';

/** No row has more callers. */
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
   * @param {Record<string, string>} [headers] of every call
   */
  constructor(url, token, headers = {}) {
    this.#pool = new Pool(url, { connections: CONNECTIONS });
    this.#headers = {
      'content-type': 'application/json',
      ...headers,
      ...(token && { authorization: `Bearer ${token}` }),
    };
  }

  /** @returns a function that calls `message/send` and checks that the task is completed */
  send(agentType, path = '/send', text = undefined, metadata = {}) {
    return this.call(path, bodies('message/send', agentType, text, metadata), isCompleted);
  }

  /** @returns a function that calls the hosted agent directly */
  sendToAgent() {
    return this.call('/', bodies('message/send', 'echo'), isMessage);
  }

  /** @returns a function that reads a `message/stream` to its end and resolves with the milliseconds until the first byte of the body */
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

  /** Posts once and gives the answer. */
  async post(path, body) {
    const { statusCode, body: answer } = await this.#post(path, JSON.stringify(body));
    const text = await answer.text();
    if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${text}`);
    return JSON.parse(text);
  }

  close() {
    return this.#pool.close();
  }

  #post(path, body) {
    return this.#pool.request({ path, method: 'POST', headers: this.#headers, body });
  }

  /**
   * @param {string} path
   * @param {() => string} next the body of the next call
   * @param {(answer: object) => boolean} isExpected
   * @returns a function that makes one call and checks its answer
   */
  call(path, next, isExpected) {
    return async () => {
      const { statusCode, body } = await this.#post(path, next());
      const text = await body.text();
      if (statusCode !== 200 || !isExpected(JSON.parse(text)))
        throw new Error(`${path} answered ${statusCode}: ${text}`);
    };
  }
}
