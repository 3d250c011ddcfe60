/** The callers of a soak: messages at a steady rate, each followed to its end through every fault. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { FleetClient, isTransient } from '../../dist/sdk/index.js';

/** Limit for the answer of one message; longer than outages and queues take. */
const ANSWER_TIMEOUT_MS = 240_000;
const RETRY_MS = 500;
const ENDED = ['completed', 'failed', 'canceled'];

const randomOf = (list) => list[Math.floor(Math.random() * list.length)];

/** Six of ten are quick, two slow, two streamed. */
function newText(name) {
  const kind = randomOf(['quick', 'quick', 'quick', 'quick', 'quick', 'quick', 'slow', 'slow', 'stream', 'stream']);
  if (kind === 'slow') return `slow ${Math.round(1_000 + Math.random() * 7_000)} ${name}`;
  return kind === 'stream' ? `stream ${Math.round(5 + Math.random() * 25)} ${name}` : `quick 0 ${name}`;
}

/** The expected answer to a message. */
export function expectedAnswer(text) {
  const [kind, amount, name] = text.split(' ');
  const chunks = kind === 'stream' ? Array.from({ length: Number(amount) }, (_, chunk) => `${chunk} `) : [];
  return `${chunks.join('')}${name}`;
}

const textOf = (parts) => parts.map((part) => part.text ?? '').join('');

export class Load {
  sent = 0;
  /** Platform ids of the accepted messages. */
  accepted = new Set();
  /** Violations, as text for the report. */
  violations = [];
  #clients;
  #types;
  #inFlight = new Set();

  constructor(accessOptions, types) {
    this.#clients = accessOptions.map((options) => new FleetClient(options));
    this.#types = types;
  }

  get inFlight() {
    return this.#inFlight.size;
  }

  /** Sends `perSecond` messages until `endsAtMs`; resolves when all have ended. */
  async run(perSecond, endsAtMs) {
    const from = performance.now();
    for (let count = 0; performance.now() < endsAtMs; count += 1) {
      await delay(Math.max(0, from + (count * 1_000) / perSecond - performance.now()));
      const message = this.#sendAndFollow(`n${count}`);
      this.#inFlight.add(message);
      void message.finally(() => this.#inFlight.delete(message));
    }
    await Promise.all(this.#inFlight);
  }

  close() {
    for (const client of this.#clients) client.destroy();
  }

  async #sendAndFollow(name) {
    const text = newText(name);
    const options = {
      messageId: randomUUID(),
      agentType: `soak-${Math.floor(Math.random() * this.#types)}`,
    };
    this.sent += 1;
    try {
      const id = text.startsWith('stream') ? await this.#stream(text, options) : await this.#send(text, options);
      this.accepted.add(id);
      await this.#waitForEnd(id);
    } catch (error) {
      this.violations.push(`${text}: ${error.message}`);
    }
  }

  /** Retries `work`, which repeats its messageId, on random nodes until it succeeds. */
  async #retry(work) {
    for (const deadline = performance.now() + ANSWER_TIMEOUT_MS; ; ) {
      try {
        return await work(randomOf(this.#clients));
      } catch (error) {
        if (!isTransient(error) || performance.now() > deadline) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  async #send(text, options) {
    return (await this.#retry((client) => client.send(text, options))).id;
  }

  /** Follows a stream, over several connections if needed. Its chunks together must be the expected answer. */
  async #stream(text, options) {
    const seen = { id: '', text: '', state: '' };
    for await (const event of randomOf(this.#clients).stream(text, options)) {
      if (event.kind === 'task') {
        Object.assign(seen, { id: event.id, state: event.status.state });
        seen.text = (event.artifacts ?? []).map(({ parts }) => textOf(parts)).join('');
      } else if (event.kind === 'artifact-update') {
        seen.text = (event.append ? seen.text : '') + textOf(event.artifact.parts);
      } else if (event.kind === 'status-update') seen.state = event.status.state;
    }
    if (seen.state === 'completed' && seen.text !== expectedAnswer(text)) {
      this.violations.push(`${text}: its stream yielded ${JSON.stringify(seen.text.slice(0, 200))}`);
    }
    return seen.id;
  }

  async #waitForEnd(id) {
    const deadline = performance.now() + ANSWER_TIMEOUT_MS;
    for (;;) {
      const { message } = await this.#retry((client) => client.messages.getById({ messageId: id }));
      const { state } = message;
      if (ENDED.includes(state)) return;
      if (performance.now() > deadline) throw new Error(`${id} is ${state}`);
      await delay(RETRY_MS);
    }
  }
}
