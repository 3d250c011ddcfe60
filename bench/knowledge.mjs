/**
 * Knowledge bases: retrieval quality on a committed set, the rate of taking in beside the bare embedder, queries as a base grows, memory, and
 * `/send` beside searches and beside ingests (docs/performance.md). Needs the local model (`npm run models`). With a Postgres with pgvector
 * (`npm run test:pgvector`) queries are measured there too.
 *
 *     npm run bench:knowledge -- [--json FILE] [--sizes 1000,10000] [--queries N] [--seconds N] [--only PART,PART]
 *
 * Parts: retrieval, ingest, send, memory, pgvector.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { migrate } from '../dist/db/migrate.js';
import { openDb } from '../dist/db/pool.js';
import { freePort } from '../dist/embedded/free-port.js';
import { LocalEmbedder } from '../dist/knowledge/embedding/local-embedder.js';
import { isModelInstalled, localModelFolder } from '../dist/knowledge/embedding/local-model.js';
import { userCacheDir } from '../dist/runtime/cache-dir.js';
import { newId } from '../dist/runtime/ids.js';
import { createLogger } from '../dist/runtime/logger.js';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { measureBeside } from './knowledge/beside.mjs';
import { measureIngest } from './knowledge/ingest-rate.mjs';
import { PGVECTOR_FOLDER, PGVECTOR_PROGRAM, startPgvector } from './knowledge/pgvector.mjs';
import { measureRetrieval } from './knowledge/retrieval.mjs';
import { measureScale } from './knowledge/scale.mjs';

const MIB = 1024 * 1024;
const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    sizes: { type: 'string', default: '1000,10000,50000,200000' },
    queries: { type: 'string', default: '40' },
    seconds: { type: 'string', default: '15' },
    only: { type: 'string', default: 'retrieval,ingest,send,memory,pgvector' },
  },
});
const parts = new Set(given.only.split(','));
const sizes = given.sizes.split(',').map(Number);
const queries = Number(given.queries);
const log = createLogger({ level: 'warn' });
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const share = (value) => value.toFixed(2);
const mib = (bytes) => (bytes / MIB).toFixed(0);

async function connect(harness, url) {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=public' });
  await client.connect();
  harness.onStop(() => client.end());
  return client;
}

/** The address of a Postgres with pgvector; undefined where none is installed. */
async function pgvectorUrl(harness) {
  const cacheDir = userCacheDir();
  if (!existsSync(join(cacheDir, PGVECTOR_FOLDER, PGVECTOR_PROGRAM))) return undefined;
  const server = await startPgvector({ cacheDir, port: await freePort() });
  harness.onStop(() => server.stop());
  await migrate(server.url, log);
  return server.url;
}

/** A database to fill, and a tenant in it. */
async function target(harness, databaseUrl) {
  const client = await connect(harness, databaseUrl);
  const tenantId = newId('ten');
  await client.query(`INSERT INTO tenants (tenant_id, name) VALUES ($1, 'bench')`, [tenantId]);
  const db = openDb({ url: databaseUrl, log });
  harness.onStop(() => db.close());
  return { client, db, databaseUrl, tenantId };
}

function scaleTable(rows) {
  const columns = [
    'chunks',
    'hybrid p50 ms',
    'semantic',
    'lexical',
    '1 % filter',
    'recall@10',
    'with filter',
    'first query ms',
    'HNSW index s',
    'index MiB',
    'RSS + MiB',
  ];
  return markdownTable(
    columns,
    rows.map((row) => [
      row.size,
      ...[row.hybridMs, row.semanticMs, row.lexicalMs, row.filteredMs].map((ms) => ms.toFixed(1)),
      row.recall.toFixed(3),
      row.filteredRecall.toFixed(3),
      row.loadMs.toFixed(0),
      row.indexMs === null ? '-' : (row.indexMs / 1_000).toFixed(1),
      mib(row.cacheBytes),
      mib(row.rssBytes),
    ]),
  );
}

async function printRetrieval(embedder) {
  progress('retrieval quality');
  const retrieval = await measureRetrieval(embedder);
  const cells = ({ kind, mode, hitAt5, mrr }) => [kind, mode, share(hitAt5), share(mrr)];
  print(`\n${markdownTable(['queries', 'mode', 'hit@5', 'MRR'], retrieval.map(cells))}`);
  return retrieval;
}

async function printIngest(options) {
  const ingest = await measureIngest(options);
  const columns = ['chunks', 'taken in, per s', 'embedder alone, per s', 'ratio'];
  const cells = [ingest.chunks, ingest.perSecond.toFixed(1), ingest.barePerSecond.toFixed(1), share(ingest.ratio)];
  print(`\n${markdownTable(columns, [cells])}`);
  return ingest;
}

async function printBeside(harness, platform, client) {
  progress('/send beside searches and ingests');
  const chunks = Math.min(50_000, Math.max(...sizes));
  const measured = await measureBeside({ harness, platform, client, chunks, seconds: Number(given.seconds), progress });
  const cells = ({ what, times }) => [what, ...[0.5, 0.95, 1].map((share) => quantile(times, share).toFixed(1))];
  print(`\n${markdownTable(['/send', 'p50 ms', 'p95 ms', 'longest ms'], measured.map(cells))}`);
  return measured.map(cells);
}

async function printScale(harness, databaseUrl, where) {
  progress(`queries, vectors ${where}`);
  const scale = await measureScale({ ...(await target(harness, databaseUrl)), sizes, queries, log, progress });
  print(`\nVectors ${where}:\n\n${scaleTable(scale)}`);
  return scale;
}

async function bench(harness) {
  const folder = localModelFolder({ EMBEDDINGS_MODEL_DIR: process.env.EMBEDDINGS_MODEL_DIR });
  if (!isModelInstalled(folder)) throw new Error('the local model is not installed: npm run models');
  print(machineLine());
  const embedder = new LocalEmbedder(folder);
  harness.onStop(() => embedder.close());
  const figures = {};
  if (parts.has('retrieval')) figures.retrieval = await printRetrieval(embedder);
  const platform = await harness.platform('platform', { EMBEDDINGS_MODEL_DIR: folder });
  const client = await connect(harness, platform.dev.database_url);
  if (parts.has('ingest')) figures.ingest = await printIngest({ platform, client, embedder, progress });
  if (parts.has('send')) figures.send = await printBeside(harness, platform, client);
  if (parts.has('memory')) figures.memory = await printScale(harness, platform.dev.database_url, 'in memory');
  const url = parts.has('pgvector') ? await pgvectorUrl(harness) : undefined;
  if (url) figures.pgvector = await printScale(harness, url, 'with pgvector');
  else if (parts.has('pgvector')) progress('pgvector is not installed (npm run test:pgvector): not measured');
  if (given.json) writeFileSync(given.json, `${JSON.stringify(figures, null, 2)}\n`);
  return 0;
}

process.exitCode = await Harness.run(bench);
