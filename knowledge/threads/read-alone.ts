import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { workerFile } from '../../runtime/worker-file.js';
import { type AnswerPart, NEXT_PART, receiveAnswer } from './answer-parts.js';
import type { ReadAnswer, ReadRequest } from './reading.js';

const PROCESS = fileURLToPath(workerFile('./reader-process.js', import.meta.url));

/** What the process is asked. */
export interface AloneRequest {
  request: ReadRequest;
  /** For the document, in milliseconds. */
  timeoutMs: number;
}

/**
 * Reads a document in a process of its own, which ends with it.
 * @throws the signal's reason; an error when the process ends without an answer
 */
export async function readAlone(request: ReadRequest, timeoutMs: number, signal: AbortSignal): Promise<ReadAnswer> {
  signal.throwIfAborted();
  // Nothing of the environment: the settings of the platform are none of a document's business.
  const reader = fork(PROCESS, { env: {}, execArgv: [], serialization: 'advanced', stdio: 'ignore' });
  reader.on('error', () => undefined); // what is awaited below fails with it
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  try {
    const exited = once(reader, 'exit', { signal: stop }).then(() => {
      throw new Error('the process that reads a document ended');
    });
    exited.catch(() => undefined); // the races below report it
    const ask = async (isFirst: boolean): Promise<AnswerPart> => {
      const answered = once(reader, 'message', { signal: stop });
      answered.catch(() => undefined);
      const sent = isFirst ? ({ request, timeoutMs } satisfies AloneRequest) : NEXT_PART;
      reader.send(sent, () => undefined); // one that cannot be reached ends
      const [part] = await Promise.race([answered, exited]);
      return part as AnswerPart;
    };
    return await receiveAnswer(ask);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    over.abort();
    reader.kill('SIGKILL');
  }
}
