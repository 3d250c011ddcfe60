/** The HTTP caller of the benchmarks: keep-alive, bodies that differ only in their `messageId`, every answer checked. */
import { Pool } from 'undici';
import { bodies } from './frames.mjs';

/** Enough for the rows of most benchmarks, which have no more callers. */
const CONNECTIONS = 64;

const isCompleted = (answer) => answer.result?.status?.state === 'completed';

/** A pool of connections to one server. */
export class Caller {
  #pool;
  #headers;

  /**
   * @param {string} url
   * @param {string} [token]
   * @param {number} [connections] how many calls may run at once
   */
  constructor(url, token, connections = CONNECTIONS) {
    this.#pool = new Pool(url, { connections });
    this.#headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  }

  /** @returns a function that calls `message/send` and checks that the task is completed */
  send(agentType) {
    const next = bodies('message/send', agentType);
    return async () => {
      const { statusCode, body } = await this.#post(next());
      const text = await body.text();
      if (statusCode !== 200 || !isCompleted(JSON.parse(text)))
        throw new Error(`/send answered ${statusCode}: ${text}`);
    };
  }

  /** @returns a function that reads a `message/stream` to its end and resolves with the milliseconds until the first byte of the body */
  stream(agentType) {
    const next = bodies('message/stream', agentType);
    return async () => {
      const from = performance.now();
      const { statusCode, body } = await this.#post(next());
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

  #post(body) {
    return this.#pool.request({ path: '/send', method: 'POST', headers: this.#headers, body });
  }
}
