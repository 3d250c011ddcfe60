import type { KnowledgeConfig } from '../../contracts/api/knowledge/knowledge.js';
import type { Db } from '../../db/pool.js';
import type { Outbound } from '../../http/outbound.js';
import { dimensionsOf, type Embedder } from '../embedder.js';
import { ParseError } from '../parse/parse-error.js';
import type { ReadDocument, ReadRequest } from '../threads/reading.js';
import { contentHash, type StoredInput } from './document-input.js';
import { type PendingDocument, readContent } from './documents.js';
import { fetchUrl } from './fetch-url.js';
import type { JobRef } from './jobs.js';
import { readExtracted, readSource, type SourceFields, type StoredSource } from './write-source.js';

/** It grows when the same bytes are read into another text, or cut otherwise. */
const READER_VERSION = 2;

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
  embedder: Embedder | undefined;
}

/**
 * A document that was read: a version to embed and write, or the news that the stored one is right.
 * `input` is what is said of the source, and `before` the stored source that the document was compared with.
 */
export type Prepared =
  | { kind: 'version'; fields: SourceFields; input: StoredInput; before: StoredSource | undefined; read: ReadDocument }
  | { kind: 'keep'; fields: SourceFields; input: StoredInput; before: StoredSource }
  | { kind: 'gone' };

/** What a document is prepared with. */
interface Preparation {
  deps: PrepareDeps;
  job: JobContext;
  document: PendingDocument;
  input: StoredInput;
  /** A refresh that makes everything anew. */
  force: boolean;
  before: StoredSource | undefined;
  /** Whether the stored vectors are of another model than the embedder's. */
  isStale: boolean;
  signal: AbortSignal;
}

type Hints = Pick<StoredInput, 'content_type' | 'filename'>;

/** What a document's chunks depend on besides its bytes: how they are read, and how the text is cut. */
function chunkingOf({ config }: JobContext, hints: Hints): string {
  const extension = /\.[A-Za-z0-9]+$/.exec(hints.filename ?? '')?.[0] ?? '';
  const how = [READER_VERSION, config.chunk_tokens, config.chunk_overlap];
  return [...how, hints.content_type ?? '', extension.toLowerCase()].join('/');
}

/** Whether a caller says the same of a document's title and type as of the one that is stored: its text is read and named alike. */
function saysTheSame({ title, filename, content_type }: StoredInput, { declared }: StoredSource): boolean {
  return title === declared.title && filename === declared.filename && content_type === declared.content_type;
}

interface Content {
  bytes: Buffer;
  hints: Hints;
  etag: string | null;
}

/** The bytes of a document: from its row or its URL. Null: the URL's are those that are stored. Undefined: it is not wanted any more. */
async function contentOf({ deps, job, document, input, before, signal }: Preparation) {
  const { content_type, filename, url } = input;
  if (url === undefined) {
    const bytes = await deps.db.tenant(job.tenant_id, (tx) => readContent(tx, job, document.ordinal));
    return bytes ? { bytes, hints: { content_type, filename }, etag: null } : undefined;
  }
  const isKnown = before?.url === url && saysTheSame(input, before);
  const fetched = await fetchUrl(deps.outbound, url, isKnown ? (before.etag ?? undefined) : undefined, signal);
  if (!fetched) return null;
  const hints = { content_type: content_type ?? fetched.contentType, filename: filename ?? fetched.filename };
  return { bytes: fetched.content, hints, etag: fetched.etag ?? null };
}

/** Whether the stored chunks are those that a document would make. */
function isCurrent({ input, force, before, isStale }: Preparation, hash: string, chunking: string): boolean {
  if (!before || force || isStale || !saysTheSame(input, before)) return false;
  return before.content_hash === hash && before.chunking === chunking;
}

/** What is found in a document, with what the caller says of it. */
function fieldsOf(
  { deps, input }: Preparation,
  found: Omit<SourceFields, 'url' | 'source_type' | 'declared' | 'model' | 'dim'>,
): SourceFields {
  const { url = null, source_type = null, title, filename, content_type } = input;
  const declared = { title, filename, content_type };
  const { model = null, dimensions: dim = null } = deps.embedder ?? {};
  return { ...found, url, source_type, declared, model, dim };
}

/** A new version from bytes. */
async function fromContent(preparation: Preparation, { bytes, hints, etag }: Content): Promise<Prepared> {
  const { deps, job, document, input, before, signal } = preparation;
  const content_hash = document.content_hash ?? (await contentHash(bytes));
  const chunking = chunkingOf(job, hints);
  const filename = input.filename ?? hints.filename ?? null;
  if (before && isCurrent(preparation, content_hash, chunking)) {
    return { kind: 'keep', fields: { ...fieldsOf(preparation, before), filename, etag }, input, before };
  }
  const read = await deps.read(job.tenant_id, { content: bytes, hints, chunking: job.config }, signal);
  const title = input.title ?? read.title ?? filename ?? input.url ?? document.source_id;
  const content_type = read.contentType ?? 'text/plain';
  const found = { title, filename, etag, content_type, content_hash, chunking, byte_count: bytes.length };
  return { kind: 'version', fields: fieldsOf(preparation, found), input, before, read };
}

/** A new version from the text that is stored, for chunks of other settings or of another model. */
async function fromStored(preparation: Preparation, before: StoredSource): Promise<Prepared> {
  const { deps, job, document, input, signal } = preparation;
  const [, , , ...hints] = before.chunking.split('/');
  const { config } = job;
  const chunking = [READER_VERSION, config.chunk_tokens, config.chunk_overlap, ...hints].join('/');
  const fields = fieldsOf(preparation, { ...before, chunking });
  if (isCurrent(preparation, before.content_hash, chunking)) return { kind: 'keep', fields, input, before };
  const extracted = await deps.db.tenant(job.tenant_id, (tx) =>
    readExtracted(tx, { ...job, source_id: document.source_id }),
  );
  if (!extracted) return { kind: 'gone' };
  const read = await deps.read(job.tenant_id, { extracted, chunking: config }, signal);
  return { kind: 'version', fields, input, before, read };
}

/** Reads the URL of a source again. One that cannot be read leaves no chunks of other settings or of a model that is no more. */
async function fromUrlAgain(preparation: Preparation, before: StoredSource): Promise<Prepared> {
  try {
    const content = await contentOf(preparation);
    return content ? await fromContent(preparation, content) : await fromStored(preparation, before);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const stored = await fromStored({ ...preparation, force: false }, before);
    if (stored.kind === 'version') return stored;
    throw error;
  }
}

/** What a source's callers have said of it. */
function inputOf({ declared, url, source_type, tags, metadata }: StoredSource): StoredInput {
  return { ...declared, url: url ?? undefined, source_type: source_type ?? undefined, tags, metadata };
}

/**
 * Reads a document, from its row, its URL, or the text that is stored of its source.
 * @throws ParseError when it cannot be read; PlatformError BAD_GATEWAY when the provider of embeddings has to be asked and fails
 */
export async function prepareDocument(
  deps: PrepareDeps,
  job: JobContext,
  document: PendingDocument,
  signal: AbortSignal,
): Promise<Prepared> {
  const of = { tenant_id: job.tenant_id, namespace: job.namespace, source_id: document.source_id };
  const before = await deps.db.tenant(job.tenant_id, (tx) => readSource(tx, of));
  const isStale = before !== undefined && (await isStaleFor(deps.embedder, before, signal));
  const { force = false, ...given } = document.input;
  const common = { deps, job, document, force, before, isStale, signal };
  if (job.operation === 'refresh') {
    if (!before) return { kind: 'gone' };
    // What the source is called now, and not what it was called when the refresh began.
    const preparation = { ...common, input: inputOf(before) };
    return before.url === null ? fromStored(preparation, before) : fromUrlAgain(preparation, before);
  }
  const preparation = { ...common, input: given };
  const content = await contentOf(preparation);
  if (content) return fromContent(preparation, content);
  return content === null && before ? fromStored(preparation, before) : { kind: 'gone' };
}

/** Whether the vectors of a source are of another model than the embedder's, or of one of that name with other dimensions. */
async function isStaleFor(embedder: Embedder | undefined, { model, dim }: StoredSource, signal: AbortSignal) {
  if (!embedder) return false;
  return model !== embedder.model || dim !== (await dimensionsOf(embedder, signal));
}
