import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import { GUARD_OPERATIONS } from '../../contracts/api/policies/guards.js';
import type { Behaviour } from '../setup/agent.js';
import { fleetOn, to } from './fixture.js';

/** Made up; in two pieces so that scanners of repositories do not take it for a real one. */
export const SECRET = `${'AKI'}AZ7Q3M5N1P9R2T4V6`;
/** An answer with the secret, behind and before much that is none. */
export const ANSWER = `${'It was nice. '.repeat(20)}The key is ${SECRET}, keep it. ${'And so on. '.repeat(40)}`;
export const USAGE = { input_tokens: 5, output_tokens: 7 };

/** Says a text in chunks of these pieces. */
const inPieces =
  (text: string, pieces: RegExp): Behaviour =>
  (dispatch) => {
    const said = text.split(pieces);
    for (const [seq, piece] of said.entries()) dispatch.chunk(seq, piece);
    dispatch.result('', { chunk_count: said.length });
  };
export const inWords = inPieces(ANSWER, /(?<= )/);
export const inCharacters = inPieces(ANSWER, /(?:)/);

/** The text of the artifacts that a reader of a stream was shown. */
export function shownOf(events: StreamEvent[]): string {
  const parts = events.flatMap((event) => (event.kind === 'artifact-update' ? event.artifact.parts : []));
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
}

/** A tenant whose agents are of a type of their own each. */
export async function guardedFleet() {
  const fleet = await fleetOn();
  let agents = 0;
  return {
    ...fleet,
    join: async (behaviour: Behaviour) => {
      agents += 1;
      const type = `guarded-${agents}`;
      return { agent: await fleet.join(type, behaviour), toAgent: to(type) };
    },
    update: (change: object) =>
      fleet.client.ok('/policies/update_guard', change, GUARD_OPERATIONS.updateGuard.response),
    streamed: async (options: object) => {
      const events: StreamEvent[] = [];
      for await (const event of fleet.client.stream('Tell me', options)) events.push(event);
      return events;
    },
  };
}
