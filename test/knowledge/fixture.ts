import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll } from 'vitest';
import type { z } from 'zod';
import {
  type DocumentInput,
  IngestResponse,
  JobResponse,
  NewKnowledgeBaseResponse,
} from '../../contracts/api/knowledge/knowledge.js';
import { QueryResponse } from '../../contracts/api/knowledge/knowledge-query.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { gate, until } from '../setup/until.js';

/** Words as a vector: texts with the same words are near each other. */
function vectorOf(text: string, dimensions: number): number[] {
  const vector = new Array<number>(dimensions).fill(0.001);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    let hash = 7;
    for (const char of word) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % 1_000_003;
    vector[hash % dimensions] = (vector[hash % dimensions] ?? 0) + 1;
  }
  return vector;
}

/** A provider of embeddings, as any server with `/v1/embeddings` is one. */
export interface TestProvider {
  /** Settings of a platform that uses it. */
  env: { EMBEDDINGS_URL: string; EMBEDDINGS_MODEL: string };
  /** Every text so far. */
  texts: string[];
  /** Answers calls with this text in them only when `open` is called. */
  hold(text: string): { held: Promise<void>; open: () => void };
  /** Answers 500 to calls with this text in them, to be repeated at once. */
  fail(text: string | null): void;
  close(): void;
}

export async function testProvider(model = 'words-1', dimensions = 64): Promise<TestProvider> {
  const texts: string[] = [];
  const holdings: { text: string; arrived: () => void; opened: Promise<void> }[] = [];
  let failing: string | null = null;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const { input } = JSON.parse(Buffer.concat(chunks).toString()) as { input: string | string[] };
      const asked = [input].flat();
      texts.push(...asked);
      const names = (text: string) => asked.some((one) => one.includes(text));
      if (failing !== null && names(failing)) {
        response.writeHead(500, { 'retry-after': '0' }); // without it the embedder would wait for 3.5 s in all
        response.end('{"error": {"message": "no"}}');
        return;
      }
      for (const holding of holdings.filter(({ text }) => names(text))) {
        holding.arrived();
        await holding.opened;
      }
      const data = asked.map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text, dimensions) }));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    env: { EMBEDDINGS_URL: `http://127.0.0.1:${port}/v1/embeddings`, EMBEDDINGS_MODEL: model },
    texts,
    hold: (text) => {
      const arrived = gate();
      const opened = gate();
      holdings.push({ text, arrived: () => arrived.open(), opened: opened.promise });
      return { held: arrived.promise, open: () => opened.open() };
    },
    fail: (text) => {
      failing = text;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A platform of the file that embeds with a provider of the test's own; both are there once `beforeAll` is over. */
export function platformWithProvider(env: Record<string, string> = {}): {
  shared: SharedPlatform;
  provider: TestProvider;
} {
  const found = {} as { shared: SharedPlatform; provider: TestProvider };
  beforeAll(async () => {
    found.provider = await testProvider();
    found.shared = await startPlatform({ ...found.provider.env, ...env });
    return async () => {
      await found.shared.dispose();
      found.provider.close();
    };
  });
  return found;
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
