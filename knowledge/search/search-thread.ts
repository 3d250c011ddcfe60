// The worker thread of the searches: loading, scanning and its own connections to the database keep away from the main thread.
import { parentPort, workerData } from 'node:worker_threads';
import type { ErrorCode } from '../../contracts/errors.js';
import { openDb } from '../../db/pool.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { BaseKey, IndexMemory } from './index/index-cache.js';
import { Searcher, type SearcherOptions, type SearchReply, type SearchRequest } from './searcher.js';

/** What the thread is started with. */
export interface SearchThreadData extends Omit<SearcherOptions, 'db' | 'waitMaxMs'> {
  databaseUrl: string;
  /** How often indexes of knowledge bases that other processes have deleted are dropped, in milliseconds. */
  dropEveryMs: number;
}

/** What the thread is asked, by the name of the question, and what it answers. */
export interface ThreadQuestions {
  search: { asks: { request: SearchRequest; dimensions: number }; gives: SearchReply };
  forget: { asks: BaseKey; gives: undefined };
  memory: { asks: undefined; gives: IndexMemory };
}
export type ThreadRequest = {
  [Name in keyof ThreadQuestions]: { id: number; name: Name; asks: ThreadQuestions[Name]['asks'] };
}[keyof ThreadQuestions];

/** How a question failed: what the caller may be told, and for the log what it may not. */
export interface ThreadFailure {
  code: ErrorCode;
  message: string;
  headers: Record<string, string>;
  cause?: string;
}
export type ThreadReply =
  | { id: number; gives: ThreadQuestions[keyof ThreadQuestions]['gives'] }
  | { id: number; failure: ThreadFailure };

/** Of the thread; searches read little, and loads of several knowledge bases share them. */
const CONNECTIONS_MAX = 6;

const { databaseUrl, dropEveryMs, ...options } = workerData as SearchThreadData;
const log = createLogger({ level: 'warn' });
const db = openDb({ url: databaseUrl, max: CONNECTIONS_MAX, log });
const searcher = new Searcher({ db, ...options });
new Loop({ name: 'deleted indexes', intervalMs: dropEveryMs, log, work: () => searcher.dropDeleted() }).start();

function failureOf(error: unknown): ThreadFailure {
  if (!(error instanceof PlatformError)) {
    return { code: 'INTERNAL_ERROR', message: 'The search failed.', headers: {}, cause: errorMessage(error) };
  }
  const { code, message, headers, cause } = error;
  return { code, message, headers, ...(cause !== undefined && { cause: errorMessage(cause) }) };
}

async function answer(request: ThreadRequest): Promise<ThreadQuestions[keyof ThreadQuestions]['gives']> {
  switch (request.name) {
    case 'search':
      return searcher.search(request.asks.request, request.asks.dimensions);
    case 'forget':
      searcher.forget(request.asks);
      return undefined;
    case 'memory':
      return searcher.memory;
    default:
      return request satisfies never;
  }
}

const send = (reply: ThreadReply): void => parentPort?.postMessage(reply);

parentPort?.on('message', (request: ThreadRequest) => {
  answer(request).then(
    (gives) => send({ id: request.id, gives }),
    (error: unknown) => send({ id: request.id, failure: failureOf(error) }),
  );
});
