import { expect } from 'vitest';
import { IngestResponse, type JobResponse } from '../../../contracts/api/knowledge/knowledge.js';
import type { TestBase } from '../../knowledge/fixture.js';
import { until } from '../../setup/until.js';

const CALLS = 5;
/** Of a call. */
const DOCUMENTS = 100;
/** Of all calls. */
export const SOURCES = CALLS * DOCUMENTS;
/** What a platform may take to go on after a fault. */
export const RECOVERY_MS = 150_000;

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

/** Has all documents of a version taken in, in calls of a hundred. A call that a fault cut off is repeated under its key. @returns the jobs */
export async function ingestAll(base: TestBase, version: string): Promise<string[]> {
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
        const answered = await base.client.post('/knowledge_base/ingest', body);
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

/** Queries as the owner of the tables. */
type Query = (text: string, values: unknown[]) => Promise<Record<string, unknown>[]>;

/** How many sources there are, how many of them are of a version, and how many are half of one or have chunks of two. */
export async function versionsOf(query: Query, base: TestBase, version: string) {
  const [row] = await query(
    `SELECT count(*)::int AS sources, count(*) FILTER (WHERE versions > 1 OR chunks <> chunk_count)::int AS mixed,
            count(*) FILTER (WHERE newest = $2)::int AS renewed
       FROM (SELECT s.source_id, s.chunk_count, count(c.*) AS chunks, count(DISTINCT split_part(c.text, ' ', 1)) AS versions,
                    max(split_part(c.text, ' ', 1)) AS newest
               FROM knowledge_sources s LEFT JOIN knowledge_chunks c USING (tenant_id, namespace, source_id) WHERE s.namespace = $1
              GROUP BY s.source_id, s.chunk_count) AS counted`,
    [base.namespace, version],
  );
  return row as { sources: number; mixed: number; renewed: number };
}

/** Waits until all jobs have ended, for as long as they get on: a busy machine takes its time. */
export async function endsOf(base: TestBase, jobs: readonly string[]): Promise<JobResponse[]> {
  for (let before = -1; ; ) {
    const found = await until(
      async () => {
        const all = await Promise.all(jobs.map((job) => base.job(job)));
        const isOver = all.every(({ status }) => status !== 'processing');
        const done = all.reduce((sum, { progress }) => sum + progress.sources_done, 0);
        return (isOver || done > before) && { all, isOver, done };
      },
      { timeoutMs: RECOVERY_MS, what: 'progress of the jobs' },
    );
    if (found.isOver) return found.all;
    before = found.done;
  }
}

/** Waits until all jobs have ended, and checks that each source was written once and none is half there. */
export async function expectAll(
  query: Query,
  base: TestBase,
  jobs: readonly string[],
  { version, result }: { version: string; result: 'created' | 'updated' },
): Promise<void> {
  for (const job of await endsOf(base, jobs))
    expect(job).toMatchObject({ status: 'completed', result: { [result]: DOCUMENTS, failed: 0 } });
  expect(await versionsOf(query, base, version)).toEqual({ sources: SOURCES, mixed: 0, renewed: SOURCES });
  // Nor has any process kept what a kill interrupted.
  const texts = await base.texts('document says what it knows', { top_k: 50 });
  expect(texts.map((text) => text.split(' ')[0])).toEqual(new Array(50).fill(version));
  const [left] = await query('SELECT count(content)::int AS contents FROM knowledge_documents', []);
  expect(left).toEqual({ contents: 0 });
}
