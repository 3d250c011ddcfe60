import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import {
  Bases,
  type DocumentInput,
  type IngestRequest,
  IngestResponse,
  JobResponse,
  JobStarted,
  type KnowledgeBase,
  type KnowledgeStats,
  type NewKnowledgeBaseRequest,
  NewKnowledgeBaseResponse,
  OneBase,
  type RefreshRequest,
  Sources,
  Stats,
  type UpdateKnowledgeBaseRequest,
  UpdateKnowledgeBaseResponse,
} from '../../contracts/api/knowledge/knowledge.js';
import { type QueryRequest, QueryResponse } from '../../contracts/api/knowledge/knowledge-query.js';
import { ok } from '../../contracts/primitives.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

const Done = ok({});
const POLL_FIRST_MS = 100;
const POLL_MAX_MS = 2_000;

type Page = { page?: number; page_size?: number };
/** A document: text in `content`, bytes in `content_base64`, or the address of one in `url`. */
export type KnowledgeDocument = z.input<typeof DocumentInput>;
type IngestOptions = CallOptions & Pick<z.input<typeof IngestRequest>, 'idempotency_key' | 'wait'>;

/** Knowledge bases: `/knowledge_base/*`. Reading needs the scope `read`, changing `full`. */
export class Knowledge {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Creates a knowledge base, with documents if given. Not retried: a repeat is a conflict. */
  create(base: z.input<typeof NewKnowledgeBaseRequest>, options: CallOptions = {}) {
    return this.#api.post('/knowledge_base/new', base, NewKnowledgeBaseResponse, options);
  }

  /** One page of knowledge bases, newest first. */
  get(page: Page = {}, options: CallOptions = {}) {
    return this.#api.post('/knowledge_base/get', page, Bases, { ...options, retry: true });
  }

  async getById(namespace: string, options: CallOptions = {}): Promise<KnowledgeBase> {
    const answer = await this.#api.post('/knowledge_base/get_by_id', { namespace }, OneBase, {
      ...options,
      retry: true,
    });
    return answer.knowledge_base;
  }

  /** Changes the given fields of a knowledge base. */
  update(change: z.input<typeof UpdateKnowledgeBaseRequest>, options: CallOptions = {}) {
    return this.#api.post('/knowledge_base/update', change, UpdateKnowledgeBaseResponse, { ...options, retry: true });
  }

  /** Deletes a knowledge base and all its data. */
  async delete(namespace: string, options: CallOptions = {}): Promise<void> {
    await this.#api.post('/knowledge_base/delete', { namespace }, Done, options);
  }

  /**
   * Takes documents in. Small texts are there when it answers; the rest is a job, which `wait: true` waits for up to a minute, and `untilDone`
   * without an end. Retried: sources keep their ids, so a repeat changes nothing.
   */
  ingest(namespace: string, documents: KnowledgeDocument | KnowledgeDocument[], options: IngestOptions = {}) {
    const { idempotency_key, wait, ...call } = options;
    const given = Array.isArray(documents) ? { documents } : documents;
    const body = {
      namespace,
      ...given,
      ...(idempotency_key && { idempotency_key }),
      ...(wait !== undefined && { wait }),
    };
    return this.#api.post('/knowledge_base/ingest', body, IngestResponse, { ...call, retry: true });
  }

  /** How far a job is. */
  status(jobId: string, options: CallOptions = {}): Promise<JobResponse> {
    return this.#api.post('/knowledge_base/get_status', { job_id: jobId }, JobResponse, { ...options, retry: true });
  }

  /** The job once it is `completed` or `failed`. */
  async untilDone(jobId: string, options: CallOptions = {}): Promise<JobResponse> {
    for (let pause = POLL_FIRST_MS; ; pause = Math.min(POLL_MAX_MS, pause * 2)) {
      const job = await this.status(jobId, options);
      if (job.status !== 'processing') return job;
      await delay(pause, undefined, options.signal && { signal: options.signal });
    }
  }

  /** Searches one knowledge base or several. */
  query(query: z.input<typeof QueryRequest>, options: CallOptions = {}): Promise<QueryResponse> {
    return this.#api.post('/knowledge_base/query', query, QueryResponse, { ...options, retry: true });
  }

  /** Fetches URLs again, and embeds what is stale: a job. */
  refresh(request: z.input<typeof RefreshRequest>, options: CallOptions = {}) {
    return this.#api.post('/knowledge_base/refresh', request, JobStarted, { ...options, retry: true });
  }

  async stats(namespace: string, options: CallOptions = {}): Promise<KnowledgeStats> {
    return (await this.#api.post('/knowledge_base/get_stats', { namespace }, Stats, { ...options, retry: true })).stats;
  }

  /** One page of the sources of a knowledge base, newest first. */
  sources(namespace: string, page: Page = {}, options: CallOptions = {}) {
    return this.#api.post('/knowledge_base/get_sources', { namespace, ...page }, Sources, { ...options, retry: true });
  }

  async deleteSource(namespace: string, sourceId: string, options: CallOptions = {}): Promise<void> {
    await this.#api.post('/knowledge_base/delete_source', { namespace, source_id: sourceId }, Done, options);
  }
}
