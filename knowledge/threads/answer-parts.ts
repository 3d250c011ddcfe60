import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Chunk } from '../chunk/chunks.js';
import type { ReadAnswer } from './reading.js';

/**
 * Chunks of one message: the receiver copies a message at once, and asks for the next one in another turn of its event loop. A document may have
 * 50,000.
 */
const CHUNKS_PER_PART = 1_000;

/** What a receiver sends for the next part. */
export const NEXT_PART = 'next part';

/** A part of an answer: the first one has everything but further chunks. */
export interface AnswerPart {
  answer?: ReadAnswer;
  chunks: Chunk[];
  isLast: boolean;
}

/** Divides an answer. */
export function* partsOf(answer: ReadAnswer): Generator<AnswerPart, void> {
  const chunks = answer.ok ? answer.read.chunks : [];
  const first = answer.ok ? { ...answer, read: { ...answer.read, chunks: [] } } : answer;
  for (let from = 0; from === 0 || from < chunks.length; from += CHUNKS_PER_PART) {
    const part = {
      chunks: chunks.slice(from, from + CHUNKS_PER_PART),
      isLast: from + CHUNKS_PER_PART >= chunks.length,
    };
    yield from === 0 ? { ...part, answer: first } : part;
  }
}

/** Puts an answer together. @param ask gives the first part, and with each further call the next one */
export async function receiveAnswer(ask: (isFirst: boolean) => Promise<AnswerPart>): Promise<ReadAnswer> {
  let part = await ask(true);
  const { answer } = part;
  if (!answer) throw new Error('an answer begins with its first part');
  if (!answer.ok) return answer;
  answer.read.chunks.push(...part.chunks);
  while (!part.isLast) {
    await nextTurn();
    part = await ask(false);
    answer.read.chunks.push(...part.chunks);
  }
  return answer;
}
