/** The callers of a soak: messages at a steady rate, each followed to its end through every fault. */
import { randomUUID } from 'node:crypto';
import { between, randomOf, SteadyRate } from '../harness/cluster/pace.mjs';
import { PersistentCaller } from '../harness/cluster/persistent-caller.mjs';

/** Six of ten are quick, two slow, two streamed. */
function newText(name) {
  const kind = randomOf(['quick', 'quick', 'quick', 'quick', 'quick', 'quick', 'slow', 'slow', 'stream', 'stream']);
  if (kind === 'slow') return `slow ${Math.round(between([1_000, 8_000]))} ${name}`;
  return kind === 'stream' ? `stream ${Math.round(between([5, 30]))} ${name}` : `quick 0 ${name}`;
}

/** The expected answer to a message. */
export function expectedAnswer(text) {
  const [kind, amount, name] = text.split(' ');
  const chunks = kind === 'stream' ? Array.from({ length: Number(amount) }, (_, chunk) => `${chunk} `) : [];
  return `${chunks.join('')}${name}`;
}

export class Load {
  sent = 0;
  /** Platform ids of the accepted messages. */
  accepted = new Set();
  /** Violations, as text for the report. */
  violations = [];
  #caller;
  #types;
  #rate = new SteadyRate();

  constructor(accessOptions, types) {
    this.#caller = new PersistentCaller(accessOptions);
    this.#types = types;
  }

  get inFlight() {
    return this.#rate.inFlight;
  }

  /** Sends `perSecond` messages until `endsAtMs`; resolves when all have ended. */
  run(perSecond, endsAtMs) {
    return this.#rate.run(perSecond, endsAtMs, (index) => this.#sendAndFollow(`n${index}`));
  }

  close() {
    this.#caller.close();
  }

  async #sendAndFollow(name) {
    const text = newText(name);
    const options = {
      messageId: randomUUID(),
      agentType: `soak-${Math.floor(Math.random() * this.#types)}`,
    };
    this.sent += 1;
    try {
      const { id } = text.startsWith('stream')
        ? await this.#stream(text, options)
        : await this.#caller.send(text, options);
      this.accepted.add(id);
      await this.#caller.waitFor(id);
    } catch (error) {
      this.violations.push(`${text}: ${error.message}`);
    }
  }

  /** The chunks of a stream together must be the expected answer. */
  async #stream(text, options) {
    const seen = await this.#caller.stream(text, options);
    if (seen.state === 'completed' && seen.text !== expectedAnswer(text)) {
      this.violations.push(`${text}: its stream yielded ${JSON.stringify(seen.text.slice(0, 200))}`);
    }
    return seen;
  }
}
