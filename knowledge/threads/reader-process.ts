// A process that reads one document. It ends with the one that started it.
import { ParseError } from '../parse/parse-error.js';
import { type AnswerPart, NEXT_PART, partsOf } from './answer-parts.js';
import type { AloneRequest } from './read-alone.js';
import { ReaderPool } from './reader-pool.js';
import type { ReadAnswer } from './reading.js';

async function answer({ request, timeoutMs }: AloneRequest): Promise<ReadAnswer> {
  const pool = new ReaderPool({ timeoutMs, isAlone: true });
  try {
    return { ok: true, read: await pool.read('', request, new AbortController().signal) };
  } catch (error) {
    if (error instanceof ParseError) return { ok: false, code: error.code, message: error.message };
    throw error;
  }
}

let parts: Generator<AnswerPart, void> | undefined;
const sendNext = (): void => {
  const part = parts?.next().value;
  if (part) process.send?.(part);
};

process.once('disconnect', () => process.exit());
process.on('message', (request: AloneRequest | typeof NEXT_PART) => {
  if (request === NEXT_PART) return sendNext();
  void answer(request).then((answered) => {
    parts = partsOf(answered);
    sendNext();
  });
});
