import { setTimeout as delay } from 'node:timers/promises';
import type { Outbound } from '../../http/outbound.js';
import type { Embedder } from '../../knowledge/embedder.js';
import { Ingestor } from '../../knowledge/ingest/ingestor.js';
import { JobRunner } from '../../knowledge/ingest/job-runner.js';
import type { JobRef } from '../../knowledge/ingest/jobs.js';
import { createKnowledge, type Knowledge } from '../../knowledge/knowledge.js';
import { createKnowledgeSearch, type KnowledgeSearch } from '../../knowledge/search/search.js';
import { ReaderPool } from '../../knowledge/threads/reader-pool.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp } from './clean-up.js';
import type { FreshDatabase } from './database.js';

const AGAIN_MS = 20;

/** Knowledge bases put together as the platform does, without vectors by default. Jobs are worked on as by their workflows, without Temporal. */
export async function knowledgeOf(
  database: FreshDatabase,
  outbound: Outbound,
  embedder?: Embedder,
  given?: KnowledgeSearch,
): Promise<Knowledge & { untilJobsRest(): Promise<void> }> {
  const db = database.db();
  const log = createLogger({ level: 'silent' });
  const readers = new ReaderPool();
  const search = given ?? (await createKnowledgeSearch({ db, databaseUrl: database.url, embedder, cacheMb: 16, log }));
  const stopping = new AbortController();
  const working = new Set<Promise<void>>();
  const untilJobsRest = async (): Promise<void> => void (await Promise.all(working));
  cleanUp(async () => {
    stopping.abort();
    await untilJobsRest();
    await readers.close();
    await search.close();
  });
  const read: ReaderPool['read'] = (tenantId, request, signal) => readers.read(tenantId, request, signal);
  const ingestor = new Ingestor({ db, log, outbound, read, embedder, writeVectors: search.writeVectors });
  /** Slice after slice, and again what fails. */
  const work = async (ref: JobRef): Promise<void> => {
    while (!stopping.signal.aborted) {
      const progress = await runner.runSlice(ref, stopping.signal).catch(() => delay(AGAIN_MS, undefined));
      if (progress?.ended) return;
    }
  };
  const ensureIngest = async (ref: JobRef): Promise<void> => {
    const job = work(ref);
    working.add(job);
    void job.finally(() => working.delete(job));
  };
  const runner = new JobRunner({ db, log, ingestor, workflows: { ensureIngest } });
  return { ...createKnowledge({ db, log, outbound, runner, embedder, search }), untilJobsRest };
}
