/** A caller that comes through faults: it repeats its calls on any node until they succeed, and follows each message to its end. */
import { setTimeout as delay } from 'node:timers/promises';
import { FleetClient, isTransient } from '../../../dist/sdk/index.js';
import { randomOf } from './pace.mjs';

/** Limit for the answer of one message; longer than outages and queues take. */
const ANSWER_TIMEOUT_MS = 240_000;
const RETRY_MS = 500;
const ENDED = ['completed', 'failed', 'canceled'];

const textOf = (parts) => parts.map((part) => part.text ?? '').join('');

/** The text of an A2A task's artifacts. */
export const answerOf = ({ artifacts = [] }) => artifacts.map(({ parts }) => textOf(parts)).join('');

export class PersistentCaller {
  #clients;

  /** @param {object[]} accessOptions one entry for each node */
  constructor(accessOptions) {
    this.#clients = accessOptions.map((options) => new FleetClient(options));
  }

  close() {
    for (const client of this.#clients) client.destroy();
  }

  /** Repeats `work` on random nodes until it succeeds. It must be fit to be repeated, for example by its `messageId`. */
  async retry(work) {
    for (const deadline = performance.now() + ANSWER_TIMEOUT_MS; ; ) {
      try {
        return await work(randomOf(this.#clients));
      } catch (error) {
        if (!isTransient(error) || performance.now() > deadline) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  /** @returns the task as the platform answered it */
  send(text, options) {
    return this.retry((client) => client.send(text, options));
  }

  /** Follows a stream to its end, over several connections if needed. @returns what it said: `id`, `state`, and the assembled `text` */
  async stream(text, options) {
    const seen = { id: '', text: '', state: '' };
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    for await (const event of randomOf(this.#clients).stream(text, { ...options, signal })) {
      if (event.kind === 'task')
        Object.assign(seen, { id: event.id, state: event.status.state, text: answerOf(event) });
      else if (event.kind === 'artifact-update')
        seen.text = (event.append ? seen.text : '') + textOf(event.artifact.parts);
      else if (event.kind === 'status-update') seen.state = event.status.state;
    }
    return seen;
  }

  /** Waits until a message is in one of these states, its final ones by default. @returns its record */
  async waitFor(id, states = ENDED) {
    const deadline = performance.now() + ANSWER_TIMEOUT_MS;
    for (;;) {
      const { message } = await this.retry((client) => client.messages.getById({ messageId: id }));
      if (states.includes(message.state) || ENDED.includes(message.state)) return message;
      if (performance.now() > deadline) throw new Error(`${id} is ${message.state}`);
      await delay(RETRY_MS);
    }
  }
}
