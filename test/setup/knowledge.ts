import type { Outbound } from '../../http/outbound.js';
import type { Embedder } from '../../knowledge/embedder.js';
import { Ingestor } from '../../knowledge/ingest/ingestor.js';
import { JobRunner } from '../../knowledge/ingest/job-runner.js';
import { createKnowledge, type Knowledge } from '../../knowledge/knowledge.js';
import { createKnowledgeSearch, type KnowledgeSearch } from '../../knowledge/search/search.js';
import { ReaderPool } from '../../knowledge/threads/reader-pool.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp } from './clean-up.js';
import type { FreshDatabase } from './database.js';

/** Knowledge bases put together as the platform does, without vectors by default. There is no worker: only small documents are taken in. */
export async function knowledgeOf(
  database: FreshDatabase,
  outbound: Outbound,
  embedder?: Embedder,
  given?: KnowledgeSearch,
): Promise<Knowledge> {
  const db = database.db();
  const log = createLogger({ level: 'error' });
  const readers = new ReaderPool();
  const search = given ?? (await createKnowledgeSearch({ db, databaseUrl: database.url, embedder, cacheMb: 16, log }));
  cleanUp(async () => {
    await readers.close();
    await search.close();
  });
  const read: ReaderPool['read'] = (tenantId, request, signal) => readers.read(tenantId, request, signal);
  const ingestor = new Ingestor({ db, log, outbound, read, embedder, writeVectors: search.writeVectors });
  const runner = new JobRunner({ db, log, ingestor, workflows: { ensureIngest: async () => undefined } });
  return createKnowledge({ db, log, outbound, runner, embedder, search });
}
