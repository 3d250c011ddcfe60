// The worker thread of the searches: loading, scanning and its own connections to the database keep away from the main thread.
import { parentPort, workerData } from 'node:worker_threads';
import type { ErrorCode } from '../../contracts/errors.js';
import { openDb } from '../../db/pool.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';
import { Searcher, type SearchReply, type SearchRequest } from './searcher.js';

/** What the thread is started with. */
export interface SearchThreadData {
  databaseUrl: string;
  model: string | null;
  usesPgvector: boolean;
  cacheBytes: number;
}
export type ThreadRequest = { id: number; request: SearchRequest; dimensions: number };
export type ThreadReply =
  | { id: number; reply: SearchReply; cacheBytes: number }
  | { id: number; error: { code: ErrorCode; message: string } };

/** Of the thread; searches read little, and loads of several knowledge bases share them. */
const CONNECTIONS_MAX = 6;

const { databaseUrl, ...options } = workerData as SearchThreadData;
const db = openDb({ url: databaseUrl, max: CONNECTIONS_MAX, log: createLogger({ level: 'warn' }) });
const searcher = new Searcher({ db, ...options });

const send = (reply: ThreadReply): void => parentPort?.postMessage(reply);

parentPort?.on('message', ({ id, request, dimensions }: ThreadRequest) => {
  searcher.search(request, dimensions).then(
    (reply) => send({ id, reply, cacheBytes: searcher.cacheBytes }),
    (error: unknown) => {
      const code = error instanceof PlatformError ? error.code : 'INTERNAL_ERROR';
      send({ id, error: { code, message: errorMessage(error) } });
    },
  );
});
