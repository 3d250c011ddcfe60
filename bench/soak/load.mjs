/** The callers of a soak: messages at a steady rate, each followed to its end through every fault. */
import { randomUUID } from 'node:crypto';
import { ApiError } from '../../dist/sdk/index.js';
import { between, randomOf, SteadyRate } from '../harness/cluster/pace.mjs';
import { PersistentCaller } from '../harness/cluster/persistent-caller.mjs';

/** Of twelve messages six are quick, two slow, two streamed; one asks a human and one calls a tool of another agent. */
const KINDS = Object.entries({ quick: 6, slow: 2, stream: 2, ask: 1, tool: 1 }).flatMap(([kind, count]) =>
  Array(count).fill(kind),
);
const SLOW_MS = [1_000, 8_000];
const CHUNKS = [5, 30];

const randomType = (types) => `soak-${Math.floor(Math.random() * types)}`;

/** `KIND ARGUMENT NAME`; the argument: milliseconds of a slow message, chunks of a stream, the type of the agents with the tool. */
function newText(name, types) {
  const kind = randomOf(KINDS);
  if (kind === 'slow') return `slow ${Math.round(between(SLOW_MS))} ${name}`;
  if (kind === 'stream') return `stream ${Math.round(between(CHUNKS))} ${name}`;
  return `${kind} ${kind === 'tool' ? randomType(types) : '-'} ${name}`;
}

/** The expected answer to a message. */
export function expectedAnswer(text) {
  const [kind, argument, name] = text.split(' ');
  if (kind === 'ask') return `confirmed ${name}`;
  if (kind === 'tool') return `echoed ${name}`;
  const chunks = kind === 'stream' ? Array.from({ length: Number(argument) }, (_, chunk) => `${chunk} `) : [];
  return `${chunks.join('')}${name}`;
}

/** How many agents may start a message: one more after the answer to its question. */
export const startsMax = (text) => (text.startsWith('ask') ? 2 : 1);

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
    const text = newText(name, this.#types);
    const options = {
      messageId: randomUUID(),
      agentType: randomType(this.#types),
    };
    this.sent += 1;
    try {
      const { id } = text.startsWith('stream')
        ? await this.#stream(text, options)
        : await this.#caller.send(text, options);
      this.accepted.add(id);
      if (text.startsWith('ask')) await this.#confirm(id);
      await this.#caller.waitFor(id);
    } catch (error) {
      this.violations.push(`${text}: ${error.message}`);
    }
  }

  /** Confirms the question of a message, unless the message has failed before it was asked. */
  async #confirm(id) {
    const { state, inputRequest } = await this.#caller.waitFor(id, ['input-required']);
    if (state !== 'input-required') return;
    const decision = { resolution: 'confirmed', requestId: inputRequest.requestId };
    try {
      await this.#caller.retry((client) => client.messages.resolve(id, decision));
    } catch (error) {
      // The answer to an earlier attempt was lost: the decision counts once.
      if (!(error instanceof ApiError && error.code === 'ALREADY_RESOLVED')) throw error;
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
