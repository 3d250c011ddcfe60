/** The callers of a soak: messages at a steady rate, each followed to its end whatever happens on the way. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { FleetClient, isTransient } from '../dist/sdk/index.js';

/** For the answer of one message, beyond what outages and queues take. */
const PATIENCE_MS = 240_000;
const AGAIN_MS = 500;
const ENDED = ['completed', 'failed', 'canceled'];

const any = (list) => list[Math.floor(Math.random() * list.length)];

/** Six of ten are quick, two slow, two streamed. */
function newText(name) {
  const kind = any(['quick', 'quick', 'quick', 'quick', 'quick', 'quick', 'slow', 'slow', 'stream', 'stream']);
  if (kind === 'slow') return `slow ${Math.round(1_000 + Math.random() * 7_000)} ${name}`;
  return kind === 'stream' ? `stream ${Math.round(5 + Math.random() * 25)} ${name}` : `quick 0 ${name}`;
}

/** What a completed message answers. */
export function answerTo(text) {
  const [kind, amount, name] = text.split(' ');
  const pieces = kind === 'stream' ? Array.from({ length: Number(amount) }, (_, piece) => `${piece} `) : [];
  return `${pieces.join('')}${name}`;
}

const textOf = (parts) => parts.map((part) => part.text ?? '').join('');

export class Load {
  sent = 0;
  /** Ids of the messages that were accepted, by the platform's own name. */
  accepted = new Set();
  /** What should not be, in words. */
  violations = [];
  #clients;
  #types;
  #inFlight = new Set();

  constructor(places, types) {
    this.#clients = places.map((place) => new FleetClient(place));
    this.#types = types;
  }

  get inFlight() {
    return this.#inFlight.size;
  }

  /** Sends `perSecond` until `endsAtMs`, and resolves when all have ended. */
  async run(perSecond, endsAtMs) {
    const from = performance.now();
    for (let count = 0; performance.now() < endsAtMs; count += 1) {
      await delay(Math.max(0, from + (count * 1_000) / perSecond - performance.now()));
      const message = this.#one(`n${count}`);
      this.#inFlight.add(message);
      void message.finally(() => this.#inFlight.delete(message));
    }
    await Promise.all(this.#inFlight);
  }

  close() {
    for (const client of this.#clients) client.destroy();
  }

  async #one(name) {
    const text = newText(name);
    const options = {
      messageId: randomUUID(),
      metadata: { agent_type: `soak-${Math.floor(Math.random() * this.#types)}` },
    };
    this.sent += 1;
    try {
      const id = text.startsWith('stream') ? await this.#streamed(text, options) : await this.#sent(text, options);
      this.accepted.add(id);
      await this.#ended(id);
    } catch (error) {
      this.violations.push(`${text}: ${error.message}`);
    }
  }

  /** Sent again under its messageId, to whichever node, until it is answered. */
  async #again(work) {
    for (const until = performance.now() + PATIENCE_MS; ; ) {
      try {
        return await work(any(this.#clients));
      } catch (error) {
        if (!isTransient(error) || performance.now() > until) throw error;
        await delay(AGAIN_MS);
      }
    }
  }

  async #sent(text, options) {
    return (await this.#again((client) => client.send(text, options))).id;
  }

  /** The pieces that came must be the answer, on however many connections. */
  async #streamed(text, options) {
    const seen = { id: '', text: '', state: '' };
    for await (const event of any(this.#clients).stream(text, options)) {
      if (event.kind === 'task') {
        Object.assign(seen, { id: event.id, state: event.status.state });
        seen.text = (event.artifacts ?? []).map(({ parts }) => textOf(parts)).join('');
      } else if (event.kind === 'artifact-update') {
        seen.text = (event.append ? seen.text : '') + textOf(event.artifact.parts);
      } else if (event.kind === 'status-update') seen.state = event.status.state;
    }
    if (seen.state === 'completed' && seen.text !== answerTo(text)) {
      this.violations.push(`${text}: its stream said ${JSON.stringify(seen.text.slice(0, 200))}`);
    }
    return seen.id;
  }

  async #ended(id) {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const { state } = await this.#again((client) => client.messages.getById(id));
      if (ENDED.includes(state)) return;
      if (performance.now() > until) throw new Error(`${id} is ${state}`);
      await delay(AGAIN_MS);
    }
  }
}
