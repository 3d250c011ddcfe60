/**
 * Knowledge bases: retrieval quality on a committed set, the rate of taking in beside the bare embedder, queries as a base grows, memory, and
 * `/send` beside searches and beside an ingest (docs/performance.md). Needs the local model (`npm run models`). With a Postgres with pgvector
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
import { Caller } from './harness/caller.mjs';
import { Harness, joinAgents } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { fillBase } from './knowledge/fill.mjs';
import { documents, ingestAll, measureIngest } from './knowledge/ingest-rate.mjs';
import { PGVECTOR_FOLDER, PGVECTOR_PROGRAM, startPgvector } from './knowledge/pgvector.mjs';
import { measureRetrieval } from './knowledge/retrieval.mjs';
import { measureScale } from './knowledge/scale.mjs';

const MIB = 1024 * 1024;
const PAUSE_MS = 10;
/** Documents of a call beside which `/send` is measured. */
const INGESTED = 30;
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

/** Calls of `/send` one after the other for so long. @returns their times in milliseconds */
async function sendFor(seconds, send) {
  const times = [];
  const until = performance.now() + seconds * 1_000;
  while (performance.now() < until) {
    const from = performance.now();
    await send();
    times.push(performance.now() - from);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return times;
}

/** Runs `work` again and again until `beside` is over. @returns how often, and what `beside` gave */
async function during(work, beside) {
  let count = 0;
  let isOver = false;
  const repeating = (async () => {
    while (!isOver) {
      await work();
      count += 1;
    }
  })();
  const result = await beside();
  isOver = true;
  await repeating;
  return { count, result };
}

/** `/send` alone, beside searches one after the other in the largest base, and beside an ingest that does not end, all in the same process. */
async function measureBeside(harness, platform, client) {
  const namespace = 'bench-beside';
  const chunks = Math.min(50_000, Math.max(...sizes));
  await fillBase(client, { tenantId: platform.dev.tenant_id, namespace, chunks, model: 'all-MiniLM-L6-v2-int8' });
  await joinAgents(platform, await harness.agents(platform));
  const send = new Caller(platform.dev.base_url, platform.token).send('echo');
  const query = () => platform.post('/knowledge_base/query', { namespace, query: 'w1 w2 w3', min_score: 0 });
  const measure = () => sendFor(Number(given.seconds), send);
  await sendFor(2, send);
  await query();
  const alone = await measure();
  const searches = await during(query, measure);
  const taken = 'bench-beside-ingest';
  await platform.post('/knowledge_base/new', { namespace: taken });
  let runs = 1; // others than those of the rate of taking in
  const ingest = () => ingestAll(platform, { namespace: taken, documents: documents(runs++).slice(0, INGESTED) });
  await ingest();
  const ingests = await during(ingest, measure);
  return { chunks, alone, searches, ingests };
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
  progress('/send beside searches and an ingest');
  const { chunks, alone, searches, ingests } = await measureBeside(harness, platform, client);
  const times = (list) => [quantile(list, 0.5).toFixed(1), quantile(list, 0.95).toFixed(1)];
  const rows = [
    ['alone', ...times(alone)],
    [`beside ${searches.count} searches of ${chunks} chunks`, ...times(searches.result)],
    [`beside an ingest of ${ingests.count * INGESTED} documents`, ...times(ingests.result)],
  ];
  print(`\n${markdownTable(['/send', 'p50 ms', 'p95 ms'], rows)}`);
  return rows;
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
