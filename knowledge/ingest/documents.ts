import type { SourceErrorCode } from '../../contracts/api/knowledge/knowledge.js';
import type { Db, Tx } from '../../db/pool.js';
import type { StoredInput } from './document-input.js';
import { endJobIfDone, type JobRef } from './jobs.js';
import { readBytes } from './large-values.js';

/** A document to be taken in. */
export interface PendingDocument {
  ordinal: number;
  source_id: string;
  place: number;
  input: StoredInput & { force?: boolean };
  content_bytes: number;
  content_hash: string | null;
  attempts: number;
}

/** Why a document was not taken in. What was there of its source stays. */
export interface DocumentFailure {
  code: SourceErrorCode;
  message: string;
}

/** A document that was begun so often and has not ended is given up: it may be what ends its process. */
export const ATTEMPTS_MAX = 6;
/** Of one slice: what is read and embedded together. */
const SLICE_BYTES = 1024 * 1024;
const SLICE_DOCUMENTS = 50;

/** What a slice may take, from the pending documents in their order. One that was begun before is taken alone. */
export function sliceOf(pending: readonly PendingDocument[]): PendingDocument[] {
  const slice: PendingDocument[] = [];
  let bytes = 0;
  for (const document of pending) {
    // A URL's size is not known before it is read.
    bytes += document.input.url === undefined ? document.content_bytes : SLICE_BYTES / 4;
    if (slice.length > 0 && (bytes > SLICE_BYTES || document.attempts > 0)) break;
    slice.push(document);
    if (document.attempts > 0) break;
  }
  return slice;
}

const NEVER_ENDED: DocumentFailure = {
  code: 'INTERNAL',
  message: `Taking the document in was begun ${ATTEMPTS_MAX} times and never came to an end.`,
};

/** Ends the documents of a job that are pending, as failed. @param attemptsMin those that were begun at least so often */
async function failPending(
  tx: Tx,
  { tenant_id, job_id }: JobRef,
  failure: DocumentFailure,
  attemptsMin = 0,
): Promise<void> {
  await tx.query(
    `UPDATE knowledge_documents SET state = 'failed', result = 'failed', content = NULL, error = $3
      WHERE tenant_id = $1 AND job_id = $2 AND state = 'pending' AND attempts >= $4`,
    [tenant_id, job_id, failure, attemptsMin],
  );
}

/**
 * Takes the next documents of a job, counting the attempt; none where the job has ended or has no more. Those whose last attempt ended with
 * its process, or was cut off, are given up here: nobody else was there to do so.
 */
export async function beginSlice(tx: Tx, { tenant_id, job_id }: JobRef): Promise<PendingDocument[]> {
  const begun = await tx.query(
    `UPDATE knowledge_jobs SET phase = 'working', updated_at = now() WHERE tenant_id = $1 AND job_id = $2 AND status = 'processing'
     RETURNING 1`,
    [tenant_id, job_id],
  );
  if (begun.length === 0) return [];
  await failPending(tx, { tenant_id, job_id }, NEVER_ENDED, ATTEMPTS_MAX);
  const pending = await tx.query<PendingDocument>(
    `SELECT ordinal, source_id, place, input, content_bytes, content_hash, attempts FROM knowledge_documents
      WHERE tenant_id = $1 AND job_id = $2 AND state = 'pending' ORDER BY ordinal LIMIT ${SLICE_DOCUMENTS}`,
    [tenant_id, job_id],
  );
  const slice = sliceOf(pending);
  const ordinals = slice.map(({ ordinal }) => ordinal);
  await tx.query(
    'UPDATE knowledge_documents SET attempts = attempts + 1 WHERE tenant_id = $1 AND job_id = $2 AND ordinal = ANY ($3)',
    [tenant_id, job_id, ordinals],
  );
  return slice.map((document) => ({ ...document, attempts: document.attempts + 1 }));
}

/** Takes the attempt back of documents that are still pending: an outage that ended their slice is no fault of theirs. */
export async function giveAttemptsBack(
  tx: Tx,
  { tenant_id, job_id }: JobRef,
  documents: readonly PendingDocument[],
): Promise<void> {
  await tx.query(
    `UPDATE knowledge_documents SET attempts = attempts - 1
      WHERE tenant_id = $1 AND job_id = $2 AND ordinal = ANY ($3) AND state = 'pending' AND attempts > 0`,
    [tenant_id, job_id, documents.map(({ ordinal }) => ordinal)],
  );
}

/** The bytes of a document; undefined when it is not pending any more, or has none of its own. */
export function readContent(tx: Tx, { tenant_id, job_id }: JobRef, ordinal: number): Promise<Buffer | undefined> {
  const from = `knowledge_documents WHERE tenant_id = $1 AND job_id = $2 AND ordinal = $3 AND state = 'pending'`;
  return readBytes(tx, 'content', from, [tenant_id, job_id, ordinal]);
}

/** Ends a document as failed, unless it has ended. */
export async function failDocument(
  tx: Tx,
  { tenant_id, job_id }: JobRef,
  ordinal: number,
  failure: DocumentFailure,
): Promise<void> {
  await tx.query(
    `UPDATE knowledge_documents SET state = 'failed', result = 'failed', content = NULL, error = $4
      WHERE tenant_id = $1 AND job_id = $2 AND ordinal = $3 AND state = 'pending'`,
    [tenant_id, job_id, ordinal, failure],
  );
}

/** Gives up what is left of a job that its operator has stopped. */
export async function stopJob(db: Db, ref: JobRef): Promise<void> {
  const failure: DocumentFailure = { code: 'CANCELED', message: 'An operator stopped the job.' };
  await db.tenant(ref.tenant_id, async (tx) => {
    await failPending(tx, ref, failure);
    await endJobIfDone(tx, ref);
  });
}

/**
 * Notes how many chunks of these documents are embedded.
 * @returns the documents that are still wanted: their job, their base and they themselves may have been deleted meanwhile
 */
export async function noteProgress(
  tx: Tx,
  { tenant_id, job_id }: JobRef,
  progress: readonly { ordinal: number; chunks: number; done: number }[],
): Promise<number[]> {
  const rows = await tx.query<{ ordinal: number }>(
    `UPDATE knowledge_documents d SET chunk_count = p.chunks, chunks_done = p.done
       FROM unnest($3::integer[], $4::integer[], $5::integer[]) AS p (ordinal, chunks, done), knowledge_jobs j
      WHERE d.tenant_id = $1 AND d.job_id = $2 AND d.ordinal = p.ordinal AND d.state = 'pending'
        AND j.tenant_id = $1 AND j.job_id = $2 AND j.status = 'processing' RETURNING d.ordinal`,
    [
      tenant_id,
      job_id,
      progress.map(({ ordinal }) => ordinal),
      progress.map(({ chunks }) => chunks),
      progress.map(({ done }) => done),
    ],
  );
  return rows.map(({ ordinal }) => ordinal);
}
