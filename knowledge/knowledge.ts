import type {
  DocumentInput,
  IngestRequest,
  IngestResponse,
  JobResponse,
  NewKnowledgeBaseRequest,
  RefreshRequest,
} from '../contracts/api/knowledge/knowledge.js';
import type { QueryRequest } from '../contracts/api/knowledge/knowledge-query.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db } from '../db/pool.js';
import type { Outbound } from '../http/outbound.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { type BaseRow, type KnowledgeReader, requireBase, requireBases } from './base-access.js';
import { deleteBase } from './base-deletion.js';
import { insertBase, listBases, updateBase } from './bases.js';
import { dimensionsOf, type Embedder } from './embedder.js';
import { fingerprintOf, type NewDocument, newDocuments } from './ingest/document-input.js';
import type { JobRunner } from './ingest/job-runner.js';
import { listJobs, readJob } from './ingest/job-status.js';
import { type JobRef, type NewJob, repeatedJob, writeJob, writeRefreshJob } from './ingest/jobs.js';
import type { KnowledgeSearch } from './search/search.js';
import type { KnowledgeQuery, KnowledgeResults } from './search-query.js';
import { deleteSource, listSources, type PresentModel, statsOf } from './sources.js';

export interface KnowledgeDeps {
  db: Db;
  log: Pick<Logger, 'warn'>;
  outbound: Pick<Outbound, 'checkUrl'>;
  runner: JobRunner;
  embedder: Embedder | undefined;
  search: Pick<KnowledgeSearch, 'search' | 'forget'>;
}

/** The knowledge bases of all tenants, for the API and for agents' tool calls. */
export type Knowledge = ReturnType<typeof createKnowledge>;

/** Who changes knowledge bases: a reader with a name for what it creates. */
export interface KnowledgeWriter extends KnowledgeReader {
  /** A credential, or an agent. */
  name: string;
}

/** How long statistics wait for a provider that has not been asked yet. */
const ASK_MODEL_MS = 5_000;

/** How long a call waits for its job: not at all, as the size of its documents says, or for a minute. */
type Waiting = { wait?: boolean | undefined };

function isSmall(documents: readonly NewDocument[]): boolean {
  const bytes = documents.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
  return bytes <= LIMITS.knowledgeInlineBytes && documents.every(({ isInlineText }) => isInlineText);
}

/** What several bases say of a query together: the largest number of results, the lowest bound, a mode that all have. */
function defaultsOf(bases: readonly BaseRow[]): Omit<KnowledgeQuery, 'query'> {
  const [mode, ...others] = new Set(bases.map(({ config }) => config.mode));
  return {
    topK: Math.max(...bases.map(({ config }) => config.top_k)),
    minScore: Math.min(...bases.map(({ config }) => config.min_score)),
    ...(mode && others.length === 0 && { mode }),
  };
}

function ingestAnswer(job: JobResponse, documents: readonly NewDocument[]): IngestResponse {
  const { job_id, status, sources, result } = job;
  const [only] = documents.length === 1 ? documents : [];
  return {
    ok: true,
    job_id,
    status,
    async: status === 'processing',
    sources,
    ...(result && { chunks_created: result.chunks_created }),
    ...(only && { source_id: only.sourceId }),
  };
}

/** What `/knowledge/*` does: bases, sources, jobs and searches of a tenant, as far as the reader may see them. */
export function createKnowledge(deps: KnowledgeDeps) {
  const { db, runner, embedder } = deps;
  const checkUrl = (url: string) => deps.outbound.checkUrl(url);
  const statusOf = (reader: KnowledgeReader, jobId: string) =>
    db.tenant(reader.tenantId, (tx) => readJob(tx, reader, jobId));

  /** The embedder's model. A provider that does not say how many dimensions it has is compared by its name alone. */
  async function presentModel(): Promise<PresentModel | undefined> {
    if (!embedder) return undefined;
    const dimensions = await dimensionsOf(embedder, AbortSignal.timeout(ASK_MODEL_MS)).catch((error: unknown) => {
      deps.log.warn({ err: errorMessage(error) }, 'the provider of embeddings does not answer');
      return null;
    });
    return { model: embedder.model, dimensions };
  }

  /** Has a written job run as far as its caller waits. */
  async function run(ref: JobRef, documents: readonly NewDocument[], { wait }: Waiting): Promise<void> {
    if (wait !== false && isSmall(documents)) await runner.runInline(ref);
    else await runner.start(ref);
    if (wait) await runner.untilEnded(ref);
  }

  const jobOf = (writer: KnowledgeWriter, namespace: string, operation: NewJob['operation'], key?: string) => ({
    tenantId: writer.tenantId,
    namespace,
    operation,
    createdBy: writer.name,
    idempotencyKey: key,
  });

  return {
    /** @throws PlatformError CONFLICT, IDEMPOTENCY_MISMATCH, BAD_REQUEST, PAYLOAD_TOO_LARGE */
    create: async (writer: KnowledgeWriter, request: NewKnowledgeBaseRequest) => {
      const { documents: given, idempotency_key: key, ...base } = request;
      const documents = given ? await newDocuments({ documents: given }, checkUrl) : [];
      const fingerprint = fingerprintOf(documents);
      const job = { ...jobOf(writer, base.namespace, 'create', key), fingerprint };
      const creation = { idempotencyKey: key, documents: fingerprint };
      const { row, repeated, ref } = await db.tenant(writer.tenantId, async (tx) => {
        const created = await insertBase(tx, writer, base, creation);
        // Of a repeat the job may be long gone; its documents are not taken in a second time.
        const jobWritten = created.repeated ? repeatedJob(tx, job) : given && writeJob(tx, job, documents);
        return { ...created, ref: await jobWritten };
      });
      if (!ref) return { row };
      if (!repeated) await run(ref, documents, request);
      else if (request.wait) await runner.untilEnded(ref);
      const { job_id, status } = await statusOf({ ...writer, credentialId: writer.name }, ref.job_id);
      return { row, job_id, status };
    },

    list: (reader: KnowledgeReader, page: { page: number; page_size: number }) => listBases(db, reader, page),

    get: (reader: KnowledgeReader, namespace: string) =>
      db.tenant(reader.tenantId, (tx) => requireBase(tx, reader, namespace)),

    update: (reader: KnowledgeReader, request: Parameters<typeof updateBase>[2]) =>
      db.tenant(reader.tenantId, (tx) => updateBase(tx, reader, request)),

    delete: async (reader: KnowledgeReader, namespace: string) => {
      await deleteBase(deps, reader, namespace);
      await deps.search.forget({ tenantId: reader.tenantId, namespace });
    },

    /** Takes documents in. A job that does not end while the caller waits goes on in its workflow. */
    ingest: async (writer: KnowledgeWriter, request: IngestRequest): Promise<IngestResponse> => {
      const { namespace, idempotency_key, wait, ...given } = request;
      const documents = await newDocuments(
        given satisfies DocumentInput & { documents?: DocumentInput[] | undefined },
        checkUrl,
      );
      const job = { ...jobOf(writer, namespace, 'ingest', idempotency_key), fingerprint: fingerprintOf(documents) };
      const ref = await db.tenant(writer.tenantId, async (tx) => {
        await requireBase(tx, writer, namespace);
        return writeJob(tx, job, documents);
      });
      if (!ref.repeated) await run(ref, documents, { wait });
      else if (wait) await runner.untilEnded(ref);
      return ingestAnswer(await statusOf(writer, ref.job_id), documents);
    },

    /** Reads URLs again, and makes chunks and vectors of other settings or another model anew. */
    refresh: async (writer: KnowledgeWriter, { namespace, source_ids, force = false }: RefreshRequest) => {
      const job = { ...jobOf(writer, namespace, 'refresh'), fingerprint: '' };
      const ref = await db.tenant(writer.tenantId, async (tx) => {
        await requireBase(tx, writer, namespace);
        return writeRefreshJob(tx, job, source_ids && [...new Set(source_ids)], force);
      });
      await runner.start(ref);
      return statusOf(writer, ref.job_id);
    },

    status: statusOf,

    jobs: (reader: KnowledgeReader, request: { namespace: string; page: number; page_size: number }) =>
      listJobs(db, reader, request),

    sources: (reader: KnowledgeReader, request: { namespace: string; page: number; page_size: number }) =>
      presentModel().then((model) => listSources(db, reader, request, model)),

    deleteSource: (reader: KnowledgeReader, namespace: string, sourceId: string) =>
      db.tenant(reader.tenantId, (tx) => deleteSource(tx, reader, namespace, sourceId)),

    stats: (reader: KnowledgeReader, namespace: string) =>
      presentModel().then((model) => db.tenant(reader.tenantId, (tx) => statsOf(tx, reader, namespace, model))),

    /** @throws PlatformError NOT_FOUND, BAD_REQUEST; SERVICE_UNAVAILABLE for `semantic` without an embedder, BAD_GATEWAY when it fails */
    query: async (reader: KnowledgeReader, request: QueryRequest): Promise<KnowledgeResults> => {
      const { namespace, namespaces, query, top_k, min_score, mode, filters } = request;
      const wanted = namespaces ?? (namespace === undefined ? [] : [namespace]);
      if (wanted.length === 0 || (namespaces && namespace !== undefined)) {
        throw new PlatformError('BAD_REQUEST', 'namespace: exactly one of namespace and namespaces must be given');
      }
      const unique = [...new Set(wanted)];
      const bases = await db.tenant(reader.tenantId, (tx) => requireBases(tx, reader, unique));
      const defaults = defaultsOf(bases);
      return deps.search.search(
        { tenantId: reader.tenantId, namespaces: unique },
        {
          ...defaults,
          query,
          ...(top_k !== undefined && { topK: top_k }),
          ...(min_score !== undefined && { minScore: min_score }),
          ...(mode && { mode }),
          ...(filters && { filters }),
        },
      );
    },
  };
}
