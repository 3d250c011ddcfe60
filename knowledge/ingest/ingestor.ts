import type { Db, Tx } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { Embedder } from '../embedder.js';
import type { Lane } from '../embedding/lanes.js';
import { ParseError } from '../parse/parse-error.js';
import type { KnowledgeSearch } from '../search/search.js';
import { failureOf, isOutage, mayPass } from './document-failure.js';
import {
  ATTEMPTS_MAX,
  beginSlice,
  type DocumentFailure,
  failDocument,
  giveAttemptsBack,
  noteProgress,
  type PendingDocument,
} from './documents.js';
import { endIfDone, type IngestJob, type IngestProgress, readIngestJob } from './ingest-job.js';
import type { JobRef } from './jobs.js';
import { type Piece, PieceQueue, type PreparedDocument } from './pieces.js';
import { type PrepareDeps, prepareDocument } from './prepare-document.js';
import { vectorRows } from './write-chunks.js';
import { BaseGone, keepSource, type NewVersion, type WriteResult, writeSource } from './write-source.js';

/** Texts of one call of the embedder. */
const EMBED_BATCH = 64;
type Embed = (texts: readonly string[]) => Promise<Float32Array[]>;
type Write = (document: PreparedDocument) => void;

/** Documents of a slice that are fetched and read at once, and at most so many that wait to be embedded: each may be 20 MB of text. */
const PREPARED_AT_ONCE = 4;

export interface IngestorDeps extends Omit<PrepareDeps, 'embedder'> {
  db: Db;
  log: Pick<Logger, 'info' | 'warn'>;
  embedder: Embedder | undefined;
  /** Told of new chunks once they are committed; where it fails, or the process dies before, the next search writes them. */
  writeVectors: KnowledgeSearch['writeVectors'];
}

/**
 * Takes documents in: a job's workflow calls `runSlice` until the job has ended. What a slice has written stays written when it is cut off,
 * and the next one goes on behind it; running twice at once does no harm.
 */
export class Ingestor {
  constructor(private readonly deps: IngestorDeps) {}

  /**
   * Takes the next documents of a job.
   * @param lane how urgent its vectors are
   * @throws the signal's reason; PlatformError BAD_GATEWAY, SERVICE_UNAVAILABLE or RATE_LIMITED for what may pass: the slice is to be run again
   */
  async runSlice(ref: JobRef, signal: AbortSignal, lane: Lane): Promise<IngestProgress> {
    const { db } = this.deps;
    const job = await readIngestJob(db, ref);
    if (!job) return { ended: true, namespace: '', total: 0, done: 0, failed: 0 };
    const slice = await db.tenant(ref.tenant_id, (tx) => beginSlice(tx, ref));
    try {
      await this.#embedAndWrite(job, this.#prepareAll(job, slice, signal), signal, lane);
    } catch (error) {
      await this.#forgive(job, slice, error, signal);
      throw error;
    }
    return endIfDone(db, job);
  }

  /** Takes the attempt back of what an outage cut off. Where even that fails the attempt counts, as it does when the process dies. */
  async #forgive(
    job: IngestJob,
    slice: readonly PendingDocument[],
    error: unknown,
    signal: AbortSignal,
  ): Promise<void> {
    if (!(await this.#isOutage(job, error, signal))) return;
    const { db, log } = this.deps;
    await db
      .tenant(job.tenant_id, (tx) => giveAttemptsBack(tx, job, slice))
      .catch((failure: unknown) => {
        log.warn({ err: errorMessage(failure), job_id: job.job_id }, 'an attempt could not be taken back');
      });
  }

  async #isOutage(job: IngestJob, error: unknown, signal: AbortSignal): Promise<boolean> {
    return !signal.aborted && job.is_young && isOutage(error, this.deps.embedder, signal);
  }

  /** Reads documents in their order, a few ahead of the one that is taken. Ends after whatever it has begun. */
  async *#prepareAll(
    job: IngestJob,
    slice: readonly PendingDocument[],
    signal: AbortSignal,
  ): AsyncGenerator<PreparedDocument> {
    const ahead: Promise<PreparedDocument | undefined>[] = [];
    const begin = (document: PendingDocument | undefined): void => {
      if (!document) return;
      const one = this.#guarded(job, [document], signal, () => this.#prepare(job, document, signal));
      one.catch(() => undefined); // reported in its turn
      ahead.push(one);
    };
    try {
      for (const document of slice.slice(0, PREPARED_AT_ONCE)) begin(document);
      for (const place of slice.keys()) {
        const prepared = await ahead[0];
        void ahead.shift();
        begin(slice[place + PREPARED_AT_ONCE]);
        if (prepared) yield prepared;
      }
    } finally {
      await Promise.allSettled(ahead);
    }
  }

  /** Runs a part of the work on documents; a fault that does not pass ends these documents and not the others. */
  async #guarded<T>(
    job: IngestJob,
    documents: readonly PendingDocument[],
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      // A slice that is cut off says nothing about its documents.
      if (signal.aborted) throw error;
      const last = documents.every(({ attempts }) => attempts >= ATTEMPTS_MAX);
      if (!(error instanceof ParseError) && (!last || (await this.#isOutage(job, error, signal)))) throw error;
      if (!mayPass(error) && !(error instanceof ParseError)) {
        this.deps.log.warn({ err: errorMessage(error), job_id: job.job_id }, 'a document was given up');
      }
      const failure = failureOf(error);
      await this.deps.db.tenant(job.tenant_id, async (tx) => {
        for (const { ordinal } of documents) await failDocument(tx, job, ordinal, failure);
      });
      return undefined;
    }
  }

  /** Reads a document. @returns undefined where nothing is to be embedded: what was to be done is done */
  async #prepare(
    job: IngestJob,
    document: PendingDocument,
    signal: AbortSignal,
  ): Promise<PreparedDocument | undefined> {
    const prepared = await prepareDocument(this.deps, job, document, signal);
    if (prepared.kind === 'version') return { pending: document, prepared, vectors: [] };
    if (prepared.kind === 'gone') {
      const failure: DocumentFailure = { code: 'SOURCE_DELETED', message: 'The source was deleted meanwhile.' };
      await this.deps.db.tenant(job.tenant_id, (tx) => failDocument(tx, job, document.ordinal, failure));
      return undefined;
    }
    const { fields } = prepared;
    await this.#transact(job, (tx) => keepSource(tx, { ...job, ...document }, fields, prepared));
    return undefined;
  }

  /** Embeds documents while further ones are read, the chunks of several in one call, and writes each as soon as it has its vectors. */
  async #embedAndWrite(
    job: IngestJob,
    documents: AsyncIterable<PreparedDocument>,
    signal: AbortSignal,
    lane: Lane,
  ): Promise<void> {
    // One after the other: all of them lock the row of their base.
    let writing: Promise<unknown> = Promise.resolve();
    const write: Write = (document) => {
      writing = writing.then(() => this.#guarded(job, [document.pending], signal, () => this.#write(job, document)));
      writing.catch(() => undefined); // reported at the end
    };
    const { embedder: by } = this.deps;
    const embed = by && ((texts: readonly string[]) => by.embed(texts, signal, lane));
    const wanted = new Set<PreparedDocument>();
    const waiting = new PieceQueue();
    const embedNext = async (embed: Embed): Promise<void> => {
      const batch = waiting.take(EMBED_BATCH).filter(({ document }) => wanted.has(document));
      if (batch.length > 0) await this.#embedBatch(job, batch, { wanted, embed, write }, signal);
    };
    try {
      for await (const document of documents) {
        if (!embed) {
          write(document);
          await writing;
          continue;
        }
        wanted.add(document);
        waiting.add(document);
        while (waiting.size >= EMBED_BATCH) await embedNext(embed);
      }
      while (embed && waiting.size > 0) await embedNext(embed);
    } finally {
      await writing.catch(() => undefined);
    }
    await writing;
  }

  /** Embeds some pieces, and looks meanwhile which documents are still wanted: those that are not leave `wanted`. */
  async #embedBatch(
    job: IngestJob,
    batch: readonly Piece[],
    { wanted, embed, write }: { wanted: Set<PreparedDocument>; embed: Embed; write: Write },
    signal: AbortSignal,
  ): Promise<void> {
    const looking = this.#stillWanted(job, [...wanted]);
    looking.catch(() => undefined); // reported below
    const touched = [...new Set(batch.map(({ document }) => document))];
    const pending = touched.map((document) => document.pending);
    const texts = batch.map(({ text }) => text);
    const vectors = await this.#guarded(job, pending, signal, () => embed(texts));
    const still = await looking;
    for (const document of wanted) if (!still.includes(document)) wanted.delete(document);
    for (const [place, vector] of (vectors ?? []).entries()) batch[place]?.document.vectors.push(vector);
    for (const document of touched) {
      const isWhole = document.vectors.length === document.prepared.read.chunks.length;
      if (vectors && !isWhole) continue;
      if (vectors && wanted.has(document)) write(document);
      wanted.delete(document);
    }
  }

  async #stillWanted(job: IngestJob, documents: PreparedDocument[]): Promise<PreparedDocument[]> {
    const progress = documents.map(({ pending, prepared, vectors }) => ({
      ordinal: pending.ordinal,
      chunks: prepared.read.chunks.length,
      done: vectors.length,
    }));
    const wanted = await this.deps.db.tenant(job.tenant_id, (tx) => noteProgress(tx, job, progress));
    return documents.filter(({ pending }) => wanted.includes(pending.ordinal));
  }

  async #write(job: IngestJob, { pending, prepared, vectors }: PreparedDocument): Promise<void> {
    const { fields, read } = prepared;
    const version: NewVersion = {
      // The provider's answer says how many dimensions its vectors have.
      fields: { ...fields, dim: vectors[0]?.length ?? null },
      input: prepared.input,
      before: prepared.before,
      extracted: read.extracted,
      chunks: read.chunks,
      vectors: this.deps.embedder && vectors,
    };
    const result = await this.#transact(job, (tx) => writeSource(tx, { ...job, ...pending }, version));
    if (result !== 'created' && result !== 'updated') return;
    const chunks = vectorRows(pending, { vectors: version.vectors, model: fields.model });
    const { writeVectors, log } = this.deps;
    await writeVectors(job.tenant_id, job.namespace, chunks).catch((error: unknown) => {
      log.warn({ err: errorMessage(error), job_id: job.job_id }, 'the next search writes the vectors of a source');
    });
  }

  /** Runs a write; one that finds its base deleted leaves nothing. */
  #transact(job: IngestJob, work: (tx: Tx) => Promise<WriteResult>): Promise<WriteResult> {
    return this.deps.db.tenant(job.tenant_id, work).catch((error: unknown) => {
      if (!(error instanceof BaseGone)) throw error;
      return 'gone';
    });
  }
}
