// A process that reads one document. It ends with the one that started it.
import { ParseError } from '../parse/parse-error.js';
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

process.once('disconnect', () => process.exit());
process.once('message', (request: AloneRequest) => {
  void answer(request).then((answered) => process.send?.(answered));
});
