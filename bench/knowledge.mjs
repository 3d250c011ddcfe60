/**
 * Knowledge bases: retrieval quality on a committed set, the rate of taking in beside the bare embedder, queries as a base grows, memory, and
 * `/send` beside searches (docs/performance.md). Needs the local model (`npm run models`).
 *
 *     npm run bench:knowledge -- [--json FILE] [--sizes 1000,10000] [--queries N] [--seconds N] [--database-url URL]
 *
 * With `--database-url`, queries run on that Postgres, for example one with pgvector.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { migrate } from '../dist/db/migrate.js';
import { openDb } from '../dist/db/pool.js';
import { LocalEmbedder } from '../dist/knowledge/embedding/local-embedder.js';
import { isModelInstalled, localModelFolder } from '../dist/knowledge/embedding/local-model.js';
import { newId } from '../dist/runtime/ids.js';
import { createLogger } from '../dist/runtime/logger.js';
import { Caller } from './harness/caller.mjs';
import { Harness, joinAgents } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { measureIngest } from './knowledge/ingest-rate.mjs';
import { measureRetrieval } from './knowledge/retrieval.mjs';
import { measureScale } from './knowledge/scale.mjs';

const MIB = 1024 * 1024;
const PAUSE_MS = 10;
const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    sizes: { type: 'string', default: '1000,10000,50000,200000' },
    queries: { type: 'string', default: '40' },
    seconds: { type: 'string', default: '15' },
    'database-url': { type: 'string' },
  },
});
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

/** A database to fill, and a tenant in it: the platform's, or that of `--database-url`. */
async function target(harness, platform) {
  const databaseUrl = given['database-url'] ?? platform.dev.database_url;
  if (given['database-url']) await migrate(databaseUrl, log);
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

/** `/send` alone, and beside searches one after the other in the largest base, which the same process makes. */
async function measureBeside(harness, platform, client) {
  const namespace = 'bench-beside';
  const { fillBase } = await import('./knowledge/fill.mjs');
  const chunks = Math.min(50_000, Math.max(...sizes));
  await fillBase(client, { tenantId: platform.dev.tenant_id, namespace, chunks, model: 'all-MiniLM-L6-v2-int8' });
  await joinAgents(platform, await harness.agents(platform));
  const send = new Caller(platform.dev.base_url, platform.token).send('echo');
  const query = () => platform.post('/knowledge_base/query', { namespace, query: 'w1 w2 w3', min_score: 0 });
  await sendFor(2, send);
  await query();
  const alone = await sendFor(Number(given.seconds), send);
  let searches = 0;
  let isOver = false;
  const searching = (async () => {
    while (!isOver) {
      await query();
      searches += 1;
    }
  })();
  const beside = await sendFor(Number(given.seconds), send);
  isOver = true;
  await searching;
  return { chunks, searches, alone, beside };
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
      mib(row.cacheBytes),
      mib(row.rssBytes),
    ]),
  );
}

async function bench(harness) {
  const folder = localModelFolder({ EMBEDDINGS_MODEL_DIR: process.env.EMBEDDINGS_MODEL_DIR });
  if (!isModelInstalled(folder)) throw new Error('the local model is not installed: npm run models');
  print(machineLine());
  const embedder = new LocalEmbedder(folder);
  harness.onStop(() => embedder.close());
  progress('retrieval quality');
  const retrieval = await measureRetrieval(embedder);
  const columns = ['queries', 'mode', 'hit@5', 'MRR'];
  const cells = ({ kind, mode, hitAt5, mrr }) => [kind, mode, share(hitAt5), share(mrr)];
  print(`\n${markdownTable(columns, retrieval.map(cells))}`);

  const platform = await harness.platform('platform', { EMBEDDINGS_MODEL_DIR: folder });
  const client = await connect(harness, platform.dev.database_url);
  const ingest = await measureIngest({ platform, client, embedder, progress });
  print(
    `\n${markdownTable(
      ['chunks', 'taken in, per s', 'embedder alone, per s', 'ratio'],
      [[ingest.chunks, ingest.perSecond.toFixed(1), ingest.barePerSecond.toFixed(1), share(ingest.ratio)]],
    )}`,
  );

  progress('/send beside searches');
  const beside = await measureBeside(harness, platform, client);
  const times = (list) => [quantile(list, 0.5).toFixed(1), quantile(list, 0.95).toFixed(1)];
  print(
    `\n${markdownTable(
      ['/send', 'p50 ms', 'p95 ms'],
      [
        ['alone', ...times(beside.alone)],
        [`beside ${beside.searches} searches of ${beside.chunks} chunks`, ...times(beside.beside)],
      ],
    )}`,
  );

  const scale = await measureScale({ ...(await target(harness, platform)), sizes, queries, log, progress });
  print(`\n${scaleTable(scale)}`);
  if (given.json) writeFileSync(given.json, `${JSON.stringify({ retrieval, ingest, scale }, null, 2)}\n`);
  return 0;
}

process.exitCode = await Harness.run(bench);
