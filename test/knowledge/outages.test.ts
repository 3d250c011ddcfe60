import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IngestResponse } from '../../contracts/api/knowledge/knowledge.js';
import { startBarePlatform } from '../setup/platform/platform.js';
import type { TestPlatform } from '../setup/platform/platform-process.js';
import { allEnded, killEach } from '../setup/platform/process-tree.js';
import { until } from '../setup/until.js';
import { TestBase } from './fixture.js';

const CALLS = 5;
const DOCUMENTS = 100;
const RECOVERY_MS = 150_000;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startBarePlatform();
}, 120_000);
afterAll(() => platform.kill9());

/** Rows as the owner sees them; the server may be away. */
async function query<Row extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: platform.devJson().database_url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

const nameOf = (call: number, at: number) => `doc-${call}-${at}`;
const textOf = (call: number, at: number, version: string) =>
  Array.from(
    { length: 6 },
    (_, line) => `${version} document ${nameOf(call, at)} says in line ${line} what it knows.`,
  ).join('\n\n');

function documentsOf(call: number, version: string) {
  return Array.from({ length: DOCUMENTS }, (_, at) => ({
    source_id: nameOf(call, at),
    content: textOf(call, at, version),
  }));
}

/** Takes all documents of a version in, in calls of a hundred. A call that the fault cut off is repeated under its key. */
async function ingestAll(base: TestBase, version: string): Promise<string[]> {
  const jobs: string[] = [];
  for (let call = 0; call < CALLS; call += 1) {
    const body = {
      namespace: base.namespace,
      documents: documentsOf(call, version),
      wait: false,
      idempotency_key: `${version}-${call}`,
    };
    const answer = await until(
      async () => {
        const answered = await platform.client.post('/knowledge_base/ingest', body);
        return answered.status === 200
          ? IngestResponse.parse(answered.body)
          : Promise.reject(new Error(JSON.stringify(answered.body)));
      },
      { timeoutMs: RECOVERY_MS, what: 'a call that is taken' },
    );
    jobs.push(answer.job_id);
  }
  return jobs;
}

/** How many sources are of a version, and whether any is half of one. */
async function versionsOf(base: TestBase) {
  const [row] = await query<{ sources: string; mixed: string; renewed: string }>(
    `SELECT count(*) AS sources, count(*) FILTER (WHERE versions > 1 OR chunks <> chunk_count) AS mixed, count(*) FILTER (WHERE newest = 'second') AS renewed
       FROM (SELECT s.source_id, s.chunk_count, count(c.*) AS chunks, count(DISTINCT split_part(c.text, ' ', 1)) AS versions, max(split_part(c.text, ' ', 1)) AS newest
               FROM knowledge_sources s LEFT JOIN knowledge_chunks c USING (tenant_id, namespace, source_id) WHERE s.namespace = $1
              GROUP BY s.source_id, s.chunk_count) AS counted`,
    [base.namespace],
  );
  return { sources: Number(row?.sources), mixed: Number(row?.mixed), renewed: Number(row?.renewed) };
}

const KILLS: [string, () => Promise<void>][] = [
  [
    'the platform and everything of it',
    async () => {
      await platform.kill9();
      await platform.start();
    },
  ],
  ['Postgres', () => killServer(/postgres(?!ql:).*-D|bin\/postgres/)],
  ['Temporal', () => killServer(/temporal/)],
];

async function killServer(command: RegExp): Promise<void> {
  const servers = await platform.children(command);
  expect(servers.length).toBeGreaterThan(0);
  killEach(servers);
  await allEnded(servers);
}

test.each(KILLS)(
  '500 documents are taken in once each, and none half, though %s is killed in the middle',
  async (_, kill) => {
    const base = await until(() => TestBase.create(platform.client), { timeoutMs: RECOVERY_MS, what: 'a new base' });
    await Promise.all((await ingestAll(base, 'first')).map((job) => base.ended(job, RECOVERY_MS)));
    expect(await versionsOf(base)).toEqual({ sources: CALLS * DOCUMENTS, mixed: 0, renewed: 0 });
    const jobs = await ingestAll(base, 'second');
    await until(async () => (await versionsOf(base)).renewed > 20, {
      timeoutMs: RECOVERY_MS,
      what: 'a part of the documents',
    });
    await kill();
    const found = await until(() => versionsOf(base), { timeoutMs: RECOVERY_MS, what: 'the database' });
    expect(found.mixed).toBe(0);
    expect(found.renewed).toBeLessThan(CALLS * DOCUMENTS);
    const ended = await Promise.all(jobs.map((job) => base.ended(job, RECOVERY_MS)));
    for (const job of ended)
      expect(job).toMatchObject({ status: 'completed', result: { updated: DOCUMENTS, failed: 0 } });
    expect(await versionsOf(base)).toEqual({ sources: CALLS * DOCUMENTS, mixed: 0, renewed: CALLS * DOCUMENTS });
    const [left] = await query<{ contents: string }>('SELECT count(content) AS contents FROM knowledge_documents', []);
    expect(Number(left?.contents)).toBe(0);
  },
  500_000,
);
