import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AnyId, ok, pageFields } from '../../primitives.js';
import { CONFLICT, FULL, post, TENANT } from '../operation.js';
import {
  Bases,
  IngestRequest,
  IngestResponse,
  JobResponse,
  JobStarted,
  NewKnowledgeBaseRequest,
  NewKnowledgeBaseResponse,
  OfNamespace,
  OneBase,
  RefreshRequest,
  Sources,
  SourcesRequest,
  Stats,
  UpdateKnowledgeBaseRequest,
  UpdateKnowledgeBaseResponse,
} from './knowledge.js';
import { Namespace, QueryRequest, QueryResponse } from './knowledge-query.js';

/** Knowledge bases (specification section 4): reading needs `read`, changing `full`. Agents use the tools `knowledge_base.query` and `.ingest`. */
export const KNOWLEDGE_OPERATIONS = {
  newKnowledgeBase: post('/knowledge_base/new', FULL, 'Create a knowledge base, with documents if given', {
    request: NewKnowledgeBaseRequest,
    response: NewKnowledgeBaseResponse,
    bodyBytes: LIMITS.knowledgeBodyBytes,
    ...CONFLICT,
  }),
  getKnowledgeBases: post('/knowledge_base/get', TENANT, 'List knowledge bases', {
    request: z.strictObject(pageFields),
    response: Bases,
  }),
  getKnowledgeBase: post('/knowledge_base/get_by_id', TENANT, 'Read a knowledge base', {
    request: OfNamespace,
    response: OneBase,
  }),
  updateKnowledgeBase: post('/knowledge_base/update', FULL, 'Change a knowledge base; only given fields change', {
    request: UpdateKnowledgeBaseRequest,
    response: UpdateKnowledgeBaseResponse,
  }),
  deleteKnowledgeBase: post('/knowledge_base/delete', FULL, 'Delete a knowledge base and all its data', {
    request: OfNamespace,
    response: ok({}),
  }),
  ingestDocuments: post('/knowledge_base/ingest', FULL, 'Take in documents, as a job where they are large', {
    request: IngestRequest,
    response: IngestResponse,
    bodyBytes: LIMITS.knowledgeBodyBytes,
    ...CONFLICT,
  }),
  queryKnowledge: post('/knowledge_base/query', TENANT, 'Search knowledge bases; results carry citations', {
    request: QueryRequest,
    response: QueryResponse,
  }),
  refreshKnowledgeBase: post('/knowledge_base/refresh', FULL, 'Fetch sources again, and embed stale ones anew', {
    request: RefreshRequest,
    response: JobStarted,
  }),
  getKnowledgeStats: post('/knowledge_base/get_stats', TENANT, 'Count what a knowledge base holds', {
    request: OfNamespace,
    response: Stats,
  }),
  getKnowledgeSources: post('/knowledge_base/get_sources', TENANT, 'List the sources of a knowledge base', {
    request: SourcesRequest,
    response: Sources,
  }),
  deleteKnowledgeSource: post('/knowledge_base/delete_source', FULL, 'Delete a source and all its chunks', {
    request: z.strictObject({ namespace: Namespace, source_id: AnyId }),
    response: ok({}),
  }),
  getKnowledgeJob: post('/knowledge_base/get_status', TENANT, 'Read how far a job is', {
    request: z.strictObject({ job_id: AnyId }),
    response: JobResponse,
  }),
};
