import type { KnowledgeConfig } from '../../contracts/api/knowledge/knowledge.js';
import type { Db } from '../../db/pool.js';
import type { Outbound } from '../../http/outbound.js';
import type { Embedder } from '../embedder.js';
import { ParseError } from '../parse/parse-error.js';
import type { ReadDocument, ReadRequest } from '../threads/reading.js';
import { contentHash } from './document-input.js';
import { type PendingDocument, readContent } from './documents.js';
import { type Fetched, fetchUrl } from './fetch-url.js';
import type { JobRef } from './jobs.js';
import { readExtracted, readSource, type SourceFields, type StoredSource } from './write-source.js';

/** It grows when the same bytes are read into another text, or cut otherwise. */
const READER_VERSION = 1;

/** A document's job, and what its base says of it. */
export interface JobContext extends JobRef {
  namespace: string;
  operation: string;
  config: KnowledgeConfig;
}

export interface PrepareDeps {
  db: Db;
  outbound: Pick<Outbound, 'request'>;
  read: (tenantId: string, request: ReadRequest, signal: AbortSignal) => Promise<ReadDocument>;
  embedder: Pick<Embedder, 'model' | 'dimensions'> | undefined;
}

/** A document that was read: a version to embed and write, or the news that the stored one is right. */
export type Prepared =
  | { kind: 'version'; fields: SourceFields; read: ReadDocument }
  | { kind: 'keep'; fields: SourceFields }
  | { kind: 'gone' };

/** What a document's chunks depend on besides its bytes: how they are read, and how the text is cut. */
function chunkingOf(
  { config }: JobContext,
  hints: { content_type?: string | undefined; filename?: string | undefined },
): string {
  const extension = /\.[A-Za-z0-9]+$/.exec(hints.filename ?? '')?.[0] ?? '';
  const how = [READER_VERSION, config.chunk_tokens, config.chunk_overlap];
  return [...how, hints.content_type ?? '', extension.toLowerCase()].join('/');
}

interface Content {
  bytes: Buffer;
  hints: { content_type?: string | undefined; filename?: string | undefined };
  etag: string | null;
}

/** The bytes of a document: from its row or its URL. Null: the URL's are those that are stored. */
async function contentOf(
  deps: PrepareDeps,
  job: JobContext,
  { ordinal, input }: PendingDocument,
  before: StoredSource | undefined,
  signal: AbortSignal,
): Promise<Content | null | undefined> {
  const { content_type, filename, url } = input;
  if (url === undefined) {
    const bytes = await deps.db.tenant(job.tenant_id, (tx) => readContent(tx, job, ordinal));
    return bytes ? { bytes, hints: { content_type, filename }, etag: null } : undefined;
  }
  const known = before?.url === url ? (before.etag ?? undefined) : undefined;
  const fetched: Fetched | null = await fetchUrl(deps.outbound, url, known, signal);
  if (!fetched) return null;
  const hints = { content_type: content_type ?? fetched.contentType, filename: filename ?? fetched.filename };
  return { bytes: fetched.content, hints, etag: fetched.etag ?? null };
}

function titleOf(document: PendingDocument, read: ReadDocument, filename: string | null): string {
  const { title, url } = document.input;
  return title ?? read.title ?? filename ?? url ?? document.source_id;
}

/** Whether the stored chunks are those that a document would make. */
function isCurrent(
  deps: PrepareDeps,
  document: PendingDocument,
  before: StoredSource,
  hash: string,
  chunking: string,
): boolean {
  const { title, force } = document.input;
  const sameModel = before.model === (deps.embedder?.model ?? before.model);
  const sameTitle = title === undefined || title === before.title;
  return !force && sameModel && sameTitle && before.content_hash === hash && before.chunking === chunking;
}

/** Fields that the document says, over those that are stored. */
function fieldsOf(
  deps: PrepareDeps,
  document: PendingDocument,
  more: Omit<SourceFields, 'url' | 'source_type' | 'model' | 'dim'>,
) {
  const { url = null, source_type = null } = document.input;
  return { ...more, url, source_type, model: deps.embedder?.model ?? null, dim: deps.embedder?.dimensions ?? null };
}

/** A new version from bytes. */
async function fromContent(
  deps: PrepareDeps,
  job: JobContext,
  document: PendingDocument,
  before: StoredSource | undefined,
  { bytes, hints, etag }: Content,
  signal: AbortSignal,
): Promise<Prepared> {
  const content_hash = document.content_hash ?? (await contentHash(bytes));
  const chunking = chunkingOf(job, hints);
  const filename = document.input.filename ?? hints.filename ?? null;
  if (before && isCurrent(deps, document, before, content_hash, chunking)) {
    return { kind: 'keep', fields: { ...fieldsOf(deps, document, before), filename, etag } };
  }
  const { config } = job;
  const read = await deps.read(job.tenant_id, { content: bytes, hints, chunking: config }, signal);
  const title = titleOf(document, read, filename);
  const content_type = read.contentType ?? 'text/plain';
  const known = { title, filename, etag, content_type, content_hash, chunking, byte_count: bytes.length };
  return { kind: 'version', fields: fieldsOf(deps, document, known), read };
}

/** A new version from the text that is stored, for chunks of other settings or of another model. */
async function fromStored(
  deps: PrepareDeps,
  job: JobContext,
  document: PendingDocument,
  before: StoredSource,
  signal: AbortSignal,
): Promise<Prepared> {
  const [, , , ...hints] = before.chunking.split('/');
  const { config } = job;
  const chunking = [READER_VERSION, config.chunk_tokens, config.chunk_overlap, ...hints].join('/');
  const current = isCurrent(deps, document, before, before.content_hash, chunking);
  const fields = { ...before, chunking, model: deps.embedder?.model ?? null, dim: deps.embedder?.dimensions ?? null };
  if (current) return { kind: 'keep', fields };
  const extracted = await deps.db.tenant(job.tenant_id, (tx) =>
    readExtracted(tx, { ...job, source_id: document.source_id }),
  );
  if (!extracted) return { kind: 'gone' };
  return { kind: 'version', fields, read: await deps.read(job.tenant_id, { extracted, chunking: config }, signal) };
}

/**
 * Reads a document, from its row, its URL, or the text that is stored of its source.
 * @throws ParseError when it cannot be read
 */
export async function prepareDocument(
  deps: PrepareDeps,
  job: JobContext,
  document: PendingDocument,
  signal: AbortSignal,
): Promise<Prepared> {
  const of = { tenant_id: job.tenant_id, namespace: job.namespace, source_id: document.source_id };
  const before = await deps.db.tenant(job.tenant_id, (tx) => readSource(tx, of));
  const isRefresh = job.operation === 'refresh';
  if (isRefresh && !before) return { kind: 'gone' };
  if (isRefresh && before && !before.url) return fromStored(deps, job, document, before, signal);
  try {
    const content = await contentOf(deps, job, document, before, signal);
    if (content) return await fromContent(deps, job, document, before, content, signal);
    return content === null && before ? await fromStored(deps, job, document, before, signal) : { kind: 'gone' };
  } catch (error) {
    const isStale = before && deps.embedder && before.model !== deps.embedder.model;
    // A URL that cannot be read must not leave vectors of a model that is no more.
    if (!(isRefresh && isStale && error instanceof ParseError && error.code === 'FETCH_FAILED')) throw error;
    return fromStored(deps, job, document, before, signal);
  }
}
