// A thread that reads documents. Whatever a document does to it, the process goes on: the pool ends the thread.
import { parentPort } from 'node:worker_threads';
import { ParseError } from '../parse/parse-error.js';
import { type AnswerPart, NEXT_PART, partsOf } from './answer-parts.js';
import { readDocument } from './read-document.js';
import type { ReadAnswer, ReadRequest } from './reading.js';

async function answer(request: ReadRequest): Promise<ReadAnswer> {
  try {
    return { ok: true, read: await readDocument(request) };
  } catch (error) {
    if (error instanceof ParseError) return { ok: false, code: error.code, message: error.message };
    // A library gave up on the document in a way of its own: its stack ran out, for example.
    return { ok: false, code: 'TOO_COMPLEX', message: 'The document is built in a way that cannot be read.' };
  }
}

let parts: Generator<AnswerPart, void> | undefined;
const sendNext = (): void => {
  const part = parts?.next().value;
  if (part) parentPort?.postMessage(part);
};

parentPort?.on('message', (request: ReadRequest | typeof NEXT_PART) => {
  if (request === NEXT_PART) return sendNext();
  void answer(request).then((answered) => {
    parts = partsOf(answered);
    sendNext();
  });
});
