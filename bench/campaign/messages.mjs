/** The messages of a campaign: their text tells the agent what to do, and everybody else what the answer must be. */
import { between, randomOf } from '../harness/cluster/pace.mjs';

/** What an agent reports for each of its turns. */
export const USAGE = { inputTokens: 7, outputTokens: 3, model: 'campaign' };

const drawn = (shares) => Object.entries(shares).flatMap(([kind, share]) => Array(share).fill(kind));

/** Kinds as often as they are sent. `wait` asks a human who never answers. */
export const CAMPAIGN_KINDS = drawn({ quick: 30, slow: 12, stream: 12, cancel: 10, ask: 8, tool: 12, pay: 6, wait: 1 });
export const SOAK_KINDS = drawn({ quick: 6, slow: 2, stream: 2, ask: 1, tool: 1 });

/** Range of the amount of a kind: milliseconds of work, or chunks. */
const AMOUNTS = { slow: [1_000, 8_000], stream: [5, 30], cancel: [60_000, 60_000] };
/** Kinds that hosted agents get too. */
const HOSTED = ['quick', 'slow', 'stream', 'ask'];
const HOSTED_SHARE = 0.25;

/** @returns the kind and text `KIND AMOUNT NAME` of a new message, and the type of agent that it is for; a soak has no hosted ones */
export function newMessage(name, kinds) {
  const kind = randomOf(kinds);
  const amount = Math.round(between(AMOUNTS[kind] ?? [0, 0]));
  const hosted = kinds === CAMPAIGN_KINDS && HOSTED.includes(kind) && Math.random() < HOSTED_SHARE;
  return { kind, text: `${kind} ${amount} ${name}`, agentType: hosted ? 'hosted' : 'worker' };
}

export function parseText(text) {
  const [kind, amount, name] = text.split(' ');
  return { kind, amount: Number(amount), name };
}

/** The chunks of a streamed answer, without its last one, the name. */
export const chunksOf = (amount) => Array.from({ length: amount }, (_, chunk) => `${chunk} `);

/** The answer that completes a message. */
export function expectedAnswer(text) {
  const { kind, amount, name } = parseText(text);
  switch (kind) {
    case 'stream':
      return `${chunksOf(amount).join('')}${name}`;
    case 'ask':
      return `confirmed ${name}`;
    case 'tool':
    case 'pay':
      return `${kind} done for ${name}`;
    default:
      return name;
  }
}

/** The state that a message must reach where nothing was killed. */
export function expectedState(text) {
  const { kind } = parseText(text);
  if (kind === 'cancel') return 'canceled';
  return kind === 'wait' ? 'input-required' : 'completed';
}
