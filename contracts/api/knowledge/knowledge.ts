import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AnyId, JsonObject, Metadata, ok, okPage, pageFields, Timestamp } from '../../primitives.js';
import { line, minScore, Namespace, SearchMode, Tag, topK } from './knowledge-query.js';

const Visibility = z.enum(['private', 'tenant']);

const configFields = {
  top_k: topK,
  min_score: minScore,
  /** Of queries that name none; without it the best that the platform can do. */
  mode: SearchMode,
  chunk_tokens: z.int().min(32).max(1_024),
  /** Tokens that a chunk repeats of the one before; less than half of `chunk_tokens`. */
  chunk_overlap: z.int().min(0).max(512),
};
/** How a knowledge base is searched and cut into chunks. */
export const KnowledgeConfig = z.object({
  top_k: configFields.top_k.default(5),
  min_score: configFields.min_score.default(0.2),
  mode: configFields.mode.optional(),
  chunk_tokens: configFields.chunk_tokens.default(200),
  chunk_overlap: configFields.chunk_overlap.default(30),
});
export type KnowledgeConfig = z.infer<typeof KnowledgeConfig>;
const ConfigInput = z.strictObject(configFields).partial();

export const KnowledgeBase = z.object({
  namespace: z.string(),
  display_name: z.string(),
  description: z.string(),
  visibility: Visibility,
  config: KnowledgeConfig,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type KnowledgeBase = z.infer<typeof KnowledgeBase>;

/** A document to take in. Exactly one of `content`, `content_base64` and `url`. */
export const DocumentInput = z.strictObject({
  source_id: line(200).optional(),
  content: z.string().optional(),
  content_base64: z.string().optional(),
  url: z.string().min(1).max(2_048).optional(),
  title: line(512).optional(),
  filename: line(255).optional(),
  /** A media type. It is believed where the content does not show another. */
  content_type: line(128).optional(),
  /** The caller's own word for the kind of source. */
  source_type: line(64).optional(),
  tags: z.array(Tag).max(LIMITS.knowledgeTags).optional(),
  metadata: Metadata.optional(),
});
export type DocumentInput = z.infer<typeof DocumentInput>;

const Documents = z.array(DocumentInput).min(1).max(LIMITS.knowledgeDocumentsPerCall);
const howToRun = {
  /** A repeat with the same key answers the same job. */
  idempotency_key: AnyId.optional(),
  /** True: the answer waits for the end, for a minute at most. False: it never waits. */
  wait: z.boolean().optional(),
};

const baseFields = {
  namespace: Namespace,
  display_name: z.string().max(256).optional(),
  description: z.string().max(4_096).optional(),
  visibility: Visibility.optional(),
  config: ConfigInput.optional(),
};
export const NewKnowledgeBaseRequest = z.strictObject({ ...baseFields, documents: Documents.optional(), ...howToRun });
export type NewKnowledgeBaseRequest = z.infer<typeof NewKnowledgeBaseRequest>;
export const UpdateKnowledgeBaseRequest = z.strictObject(baseFields);
export type UpdateKnowledgeBaseRequest = z.infer<typeof UpdateKnowledgeBaseRequest>;

export const IngestRequest = z.strictObject({
  namespace: Namespace,
  ...DocumentInput.shape,
  documents: Documents.optional(),
  ...howToRun,
});
export type IngestRequest = z.infer<typeof IngestRequest>;

const JobStatus = z.enum(['processing', 'completed', 'failed']);
export type JobStatus = z.infer<typeof JobStatus>;

/** Why a document was not taken in. New codes may be added. */
export const SOURCE_ERRORS = [
  /** Nothing to read in it. */
  'EMPTY',
  /** Pages without text, such as scans. */
  'NO_TEXT',
  'DAMAGED',
  'ENCRYPTED',
  'UNSUPPORTED_TYPE',
  'TOO_LARGE',
  /** Reading it took too much time or memory. */
  'TOO_COMPLEX',
  'FETCH_FAILED',
  /** The URL, or one that it redirects to, may not be reached. */
  'FORBIDDEN_ADDRESS',
  /** A later call has written the source meanwhile. */
  'SUPERSEDED',
  'SOURCE_DELETED',
  /** An operator stopped the job. */
  'CANCELED',
  'BAD_GATEWAY',
  'INTERNAL',
] as const;
export type SourceErrorCode = (typeof SOURCE_ERRORS)[number];
const SourceError = z.object({ code: z.string(), message: z.string() });

/** A document of a job, and what became of it. */
export const IngestedSource = z.object({
  source_id: z.string(),
  status: JobStatus,
  chunk_count: z.int(),
  tags: z.array(z.string()),
  created_at: Timestamp,
  content_hash: z.string().nullable(),
  result: z.enum(['created', 'updated', 'unchanged', 'failed']).optional(),
  error: SourceError.optional(),
});
export type IngestedSource = z.infer<typeof IngestedSource>;

const jobAnswer = { job_id: z.string(), status: JobStatus };
export const NewKnowledgeBaseResponse = ok({
  knowledge_base: KnowledgeBase,
  job_id: z.string().optional(),
  status: JobStatus.optional(),
});
export const UpdateKnowledgeBaseResponse = ok({
  knowledge_base: KnowledgeBase,
  /** The chunk settings changed; sources keep their chunks until they are refreshed. */
  refresh_required: z.literal(true).optional(),
});
export const IngestResponse = ok({
  ...jobAnswer,
  /** The job was not over when the call was answered. */
  async: z.boolean(),
  sources: z.array(IngestedSource),
  chunks_created: z.int().optional(),
  source_id: z.string().optional(),
});
export type IngestResponse = z.infer<typeof IngestResponse>;

/** A source as lists show it. */
export const KnowledgeSource = z.object({
  source_id: z.string(),
  status: z.literal('completed'),
  chunk_count: z.int(),
  tags: z.array(z.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
  title: z.string(),
  filename: z.string().optional(),
  url: z.string().optional(),
  content_type: z.string(),
  source_type: z.string().optional(),
  metadata: JsonObject,
  content_hash: z.string(),
  tokens: z.int(),
  bytes: z.int(),
  /** Embedded by another model than the platform's, or never. */
  stale: z.boolean(),
});
export type KnowledgeSource = z.infer<typeof KnowledgeSource>;

export const RefreshRequest = z.strictObject({
  namespace: Namespace,
  source_ids: z.array(AnyId).min(1).max(LIMITS.knowledgeRefreshSources).optional(),
  /** Also sources that nothing has changed for. */
  force: z.boolean().optional(),
});
export type RefreshRequest = z.infer<typeof RefreshRequest>;

export const KnowledgeStats = z.object({
  sources: z.int(),
  chunks: z.int(),
  tokens: z.int(),
  bytes: z.int(),
  embedding_model: z.string().nullable(),
  dimensions: z.int().nullable(),
  stale_chunks: z.int(),
  last_ingested_at: Timestamp.nullable(),
});
export type KnowledgeStats = z.infer<typeof KnowledgeStats>;

const jobFields = {
  ...jobAnswer,
  context: z.object({ namespace: z.string(), operation: z.string(), source_id: z.string().optional() }),
  progress: z.object({
    phase: z.enum(['queued', 'working', 'done']),
    sources_total: z.int(),
    sources_done: z.int(),
    sources_failed: z.int(),
    chunks_done: z.int(),
    percent: z.int().min(0).max(100),
  }),
  result: z
    .object({ created: z.int(), updated: z.int(), unchanged: z.int(), failed: z.int(), chunks_created: z.int() })
    .optional(),
  error: SourceError.optional(),
  created_at: Timestamp,
  updated_at: Timestamp,
};
/** A job as lists show it. */
export const KnowledgeJob = z.object(jobFields);
export type KnowledgeJob = z.infer<typeof KnowledgeJob>;
/** How far a job is. */
export const JobResponse = ok({ ...jobFields, sources: z.array(IngestedSource) });
export type JobResponse = z.infer<typeof JobResponse>;

export const JobStarted = ok(jobAnswer);
export const OneBase = ok({ knowledge_base: KnowledgeBase });
export const Bases = okPage({ knowledge_bases: z.array(KnowledgeBase) });
export const Jobs = okPage({ jobs: z.array(KnowledgeJob) });
export const Sources = okPage({ sources: z.array(KnowledgeSource) });
export const Stats = ok({ stats: KnowledgeStats });
export const OfNamespace = z.strictObject({ namespace: Namespace });
/** Of a list of what a base has. */
export const PageOfBase = z.strictObject({ namespace: Namespace, ...pageFields });
