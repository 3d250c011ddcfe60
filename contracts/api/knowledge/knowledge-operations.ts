import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AnyId, ok, pageFields } from '../../primitives.js';
import { CONFLICT, EXTENSION, FULL, post, TENANT } from '../operation.js';
import {
  Bases,
  IngestRequest,
  IngestResponse,
  JobResponse,
  JobStarted,
  Jobs,
  NewKnowledgeBaseRequest,
  NewKnowledgeBaseResponse,
  OfNamespace,
  OneBase,
  PageOfBase,
  RefreshRequest,
  Sources,
  Stats,
  UpdateKnowledgeBaseRequest,
  UpdateKnowledgeBaseResponse,
} from './knowledge.js';
import { Namespace, QueryRequest, QueryResponse } from './knowledge-query.js';

type Shapes<Request, Response> = {
  request: Request;
  response: Response;
  bodyBytes?: number;
  statuses?: number[];
  experimental?: boolean;
};

/** An operation that reads. */
function read<Name extends string, Request extends z.ZodType, Response extends z.ZodType>(
  name: Name,
  summary: string,
  shapes: Shapes<Request, Response>,
) {
  return post(`/knowledge_base/${name}` as const, TENANT, summary, shapes);
}

/** An operation that changes. */
function change<Name extends string, Request extends z.ZodType, Response extends z.ZodType>(
  name: Name,
  summary: string,
  shapes: Shapes<Request, Response>,
) {
  return post(`/knowledge_base/${name}` as const, FULL, summary, shapes);
}

/** Documents come with the call: a large body, and a key that may be used already. */
const WITH_DOCUMENTS = { bodyBytes: LIMITS.knowledgeBodyBytes, ...CONFLICT };
const pages = z.strictObject(pageFields);
const ofSource = z.strictObject({ namespace: Namespace, source_id: AnyId });
const ofJob = z.strictObject({ job_id: AnyId });
const created = { request: NewKnowledgeBaseRequest, response: NewKnowledgeBaseResponse, ...WITH_DOCUMENTS };
const ingested = { request: IngestRequest, response: IngestResponse, ...WITH_DOCUMENTS };
const updated = { request: UpdateKnowledgeBaseRequest, response: UpdateKnowledgeBaseResponse };
const deleted = ok({});

/** Knowledge bases: reading needs `read`, changing `full`. Agents use the tools `knowledge_base.query` and `.ingest`. */
export const KNOWLEDGE_OPERATIONS = {
  newKnowledgeBase: change('new', 'Create a knowledge base, with documents if given', created),
  getKnowledgeBases: read('get', 'List knowledge bases', { request: pages, response: Bases }),
  getKnowledgeBase: read('get_by_id', 'Read a knowledge base', { request: OfNamespace, response: OneBase }),
  updateKnowledgeBase: change('update', 'Change a knowledge base; only given fields change', updated),
  deleteKnowledgeBase: change('delete', 'Delete a knowledge base and all its data', {
    request: OfNamespace,
    response: deleted,
  }),
  ingestDocuments: change('ingest', 'Take in documents, as a job where they are large', ingested),
  queryKnowledge: read('query', 'Search knowledge bases; results carry citations', {
    request: QueryRequest,
    response: QueryResponse,
  }),
  refreshKnowledgeBase: change('refresh', 'Fetch sources again, and embed stale ones anew', {
    request: RefreshRequest,
    response: JobStarted,
  }),
  getKnowledgeStats: read('get_stats', 'Count what a knowledge base holds', { request: OfNamespace, response: Stats }),
  getKnowledgeSources: read('get_sources', 'List the sources of a knowledge base', {
    request: PageOfBase,
    response: Sources,
  }),
  deleteKnowledgeSource: change('delete_source', 'Delete a source and all its chunks', {
    request: ofSource,
    response: deleted,
  }),
  getKnowledgeJobs: read('get_jobs', 'List the jobs of a knowledge base', {
    request: PageOfBase,
    response: Jobs,
    ...EXTENSION,
  }),
  getKnowledgeJob: read('get_status', 'Read how far a job is', { request: ofJob, response: JobResponse }),
};
