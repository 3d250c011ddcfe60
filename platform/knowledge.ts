import type { Db } from '../db/pool.js';
import type { Outbound } from '../http/outbound.js';
import { chooseEmbedder } from '../knowledge/embedding/choose.js';
import { Ingestor } from '../knowledge/ingest/ingestor.js';
import { JobRunner } from '../knowledge/ingest/job-runner.js';
import { createKnowledge } from '../knowledge/knowledge.js';
import { createKnowledgeSearch } from '../knowledge/search/search.js';
import { ReaderPool } from '../knowledge/threads/reader-pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import type { RunOptions } from './roles/roles.js';

/**
 * Opens the knowledge bases. Threads and models are loaded when they are first needed.
 * @returns `runner` takes documents in only with the knowledge role; other processes leave them to one that has it
 */
export async function openKnowledge(options: {
  config: Config;
  roles: RunOptions['roles'];
  databaseUrl: string;
  db: Db;
  log: Logger;
  outbound: Outbound;
  temporal: Pick<TemporalLink, 'ensureIngest'>;
}) {
  const { config, roles, databaseUrl, db, log, outbound, temporal } = options;
  const embedder = await chooseEmbedder(config);
  const search = await createKnowledgeSearch({ db, databaseUrl, embedder, cacheMb: config.KNOWLEDGE_CACHE_MB, log });
  const readers = new ReaderPool();
  const read: ReaderPool['read'] = (tenantId, request, signal) => readers.read(tenantId, request, signal);
  const { writeVectors } = search;
  const ingestor = roles.has('knowledge')
    ? new Ingestor({ db, log, outbound, read, embedder, writeVectors })
    : undefined;
  const runner = new JobRunner({ db, log, ingestor, workflows: temporal });
  return {
    embedder,
    runner,
    knowledge: createKnowledge({ db, log, outbound, runner, embedder, search }),
    close: async (): Promise<void> => {
      await readers.close();
      await search.close();
      await embedder?.close();
    },
  };
}
