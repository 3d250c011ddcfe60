import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import {
  type DocumentInput,
  IngestResponse,
  JobResponse,
  NewKnowledgeBaseResponse,
  Sources,
} from '../../contracts/api/knowledge/knowledge.js';
import { QueryResponse } from '../../contracts/api/knowledge/knowledge-query.js';
import { serveApi } from '../api/served-api.js';
import { testProvider } from '../setup/embeddings.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { until } from '../setup/until.js';

/** The API on a database of its own, which embeds with a provider of the test's own and works on jobs. */
export async function apiWithProvider() {
  const provider = await testProvider();
  const api = await serveApi({ embedder: provider.embedder });
  return { api, provider };
}

type Document = z.input<typeof DocumentInput>;

/** A knowledge base of one test. */
export class TestBase {
  private constructor(
    readonly client: ApiClient,
    readonly namespace: string,
  ) {}

  /** One that is there already. */
  static of(client: ApiClient, namespace: string): TestBase {
    return new TestBase(client, namespace);
  }

  static async create(client: ApiClient, more: object = {}): Promise<TestBase> {
    const base = new TestBase(client, `base-${randomUUID().slice(0, 8)}`);
    await client.ok('/knowledge_base/new', { namespace: base.namespace, ...more }, NewKnowledgeBaseResponse);
    return base;
  }

  /** Calls an operation on this base. */
  ok<Schema extends z.ZodType>(operation: string, body: object, schema: Schema): Promise<z.infer<Schema>> {
    return this.client.ok(`/knowledge_base/${operation}`, { namespace: this.namespace, ...body }, schema);
  }

  ingest(document: Document | { documents: Document[] }, more: { wait?: boolean; idempotency_key?: string } = {}) {
    return this.ok('ingest', { ...document, ...more }, IngestResponse);
  }

  query(query: string, more: object = {}): Promise<QueryResponse> {
    return this.ok('query', { query, min_score: 0, ...more }, QueryResponse);
  }

  /** Begins to refresh its sources. @returns the job */
  async refresh(more: object = {}): Promise<string> {
    return (await this.ok('refresh', more, IngestResponse.pick({ job_id: true }))).job_id;
  }

  async sources(): Promise<z.infer<typeof Sources>['sources']> {
    return (await this.ok('get_sources', {}, Sources)).sources;
  }

  /** The texts that answer a query. */
  async texts(query: string, more: object = {}): Promise<string[]> {
    return (await this.query(query, more)).results.map(({ text }) => text);
  }

  job(job_id: string): Promise<JobResponse> {
    return this.client.ok('/knowledge_base/get_status', { job_id }, JobResponse);
  }

  /** The job once it has ended. */
  async ended(job_id: string, timeoutMs = 60_000): Promise<JobResponse> {
    let job: JobResponse | undefined;
    await until(
      async () => {
        job = await this.job(job_id);
        return job.status !== 'processing' || Promise.reject(new Error(JSON.stringify(job.progress)));
      },
      { timeoutMs, what: `the end of ${job_id}` },
    );
    return job as JobResponse;
  }
}

/** Makes the chunks of a base, or of one of its sources, those of a model of before. */
export async function makeStale(
  database: { query(text: string, values: unknown[]): Promise<unknown> },
  { namespace }: TestBase,
  sourceId: string | null = null,
): Promise<void> {
  await database.query(
    `WITH s AS (UPDATE knowledge_sources SET model = 'old', revision = nextval('knowledge_order') WHERE namespace = $1 AND ($2::text IS NULL OR source_id = $2)),
          b AS (UPDATE knowledge_bases SET revision = nextval('knowledge_order') WHERE namespace = $1)
     UPDATE knowledge_chunks SET model = 'old' WHERE namespace = $1 AND ($2::text IS NULL OR source_id = $2)`,
    [namespace, sourceId],
  );
}
