import { createHash, webcrypto } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DocumentInput } from '../../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';

/** What is stored of a document beside its content. */
export interface StoredInput {
  title?: string | undefined;
  filename?: string | undefined;
  url?: string | undefined;
  content_type?: string | undefined;
  source_type?: string | undefined;
  tags: string[];
  metadata: Record<string, unknown>;
}

/** A document of a call, ready to be written. */
export interface NewDocument {
  sourceId: string;
  /** Null where it is to be fetched. */
  content: Buffer | null;
  contentHash: string | null;
  input: StoredInput;
  /** It came as text in the call itself. */
  isInlineText: boolean;
}

const { subtle } = webcrypto;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The SHA-256 of a document in hex, computed beside the event loop: ten megabytes take too long for it. */
export async function contentHash(content: Uint8Array): Promise<string> {
  return Buffer.from(await subtle.digest('SHA-256', content)).toString('hex');
}

/**
 * The id of a source that its caller does not name: the same for the same URL or content, so that a repeat finds it. A UUID of version 8,
 * whose bits are those of the digest.
 */
function derivedId(of: string): string {
  const hex = sha256(of);
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `src_${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}

/** Characters that are decoded in one turn of the event loop; a multiple of four, which make three bytes. */
const BASE64_CHARS_PER_TURN = 2 * 1024 * 1024;

async function decodeBase64(text: string, place: string): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(Math.ceil((text.length / 4) * 3));
  let length = 0;
  for (let from = 0; from < text.length; from += BASE64_CHARS_PER_TURN) {
    if (from > 0) await nextTurn();
    length += bytes.write(text.slice(from, from + BASE64_CHARS_PER_TURN), length, 'base64');
  }
  const whole =
    text.length % 4 === 0 && length === (text.length / 4) * 3 - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);
  // The length tells of foreign characters, which the decoder leaves out; the end is checked by itself.
  if (!whole || !BASE64.test(text.slice(-64)))
    throw new PlatformError('BAD_REQUEST', `${place}content_base64: must be base64`);
  return bytes.subarray(0, length);
}

async function contentOf({ content, content_base64 }: DocumentInput, place: string): Promise<Buffer | null> {
  if (content !== undefined) return Buffer.from(content);
  return content_base64 === undefined ? null : decodeBase64(content_base64, place);
}

/**
 * Checks a document of a call.
 * @param place where it stands in the body, for the error: `documents.3.`
 * @throws PlatformError BAD_REQUEST, PAYLOAD_TOO_LARGE
 */
async function newDocument(given: DocumentInput, place: string, checkUrl: (url: string) => void): Promise<NewDocument> {
  const { source_id, content: text, content_base64: base64, url, tags = [], metadata = {}, ...hints } = given;
  if ([text, base64, url].filter((one) => one !== undefined).length !== 1) {
    throw new PlatformError(
      'BAD_REQUEST',
      `${place || 'body: '}exactly one of content, content_base64 and url must be given`,
    );
  }
  if (url !== undefined) {
    try {
      checkUrl(url);
    } catch {
      throw new PlatformError('BAD_REQUEST', `${place}url: must be an http or https address that may be reached`);
    }
  }
  const content = await contentOf(given, place);
  if (content && content.length > LIMITS.knowledgeDocumentBytes) {
    throw new PlatformError('PAYLOAD_TOO_LARGE', `A document may have ${LIMITS.knowledgeDocumentBytes} bytes.`);
  }
  const hash = content && (await contentHash(content));
  const input = { ...hints, tags: [...new Set(tags)], metadata, ...(url !== undefined && { url }) };
  const sourceId = source_id ?? derivedId(url ?? `${hash}`);
  return { sourceId, content, contentHash: hash, input, isInlineText: text !== undefined };
}

/** The documents of a call. @throws PlatformError BAD_REQUEST, PAYLOAD_TOO_LARGE */
export async function newDocuments(
  given: DocumentInput & { documents?: DocumentInput[] | undefined },
  checkUrl: (url: string) => void,
): Promise<NewDocument[]> {
  const { documents, ...single } = given;
  const names = Object.entries(single).filter(([, value]) => value !== undefined);
  if (documents && names.length > 0) {
    throw new PlatformError('BAD_REQUEST', `${names[0]?.[0]}: cannot stand beside documents`);
  }
  const read: NewDocument[] = [];
  // One after the other, so that other requests have their turns between them.
  for (const [place, one] of (documents ?? [single]).entries()) {
    read.push(await newDocument(one, documents ? `documents.${place}.` : '', checkUrl));
  }
  const bytes = read.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
  if (bytes > LIMITS.knowledgeCallBytes) {
    throw new PlatformError(
      'PAYLOAD_TOO_LARGE',
      `The documents of a call may have ${LIMITS.knowledgeCallBytes} bytes.`,
    );
  }
  const twice = read.find(({ sourceId }, place) => read.findIndex((one) => one.sourceId === sourceId) !== place);
  // Without ids of their own the same content twice is one source.
  if (twice && documents?.some(({ source_id }) => source_id === twice.sourceId)) {
    throw new PlatformError('BAD_REQUEST', `documents: ${twice.sourceId} is there twice`);
  }
  return read.filter(({ sourceId }, place) => read.findIndex((one) => one.sourceId === sourceId) === place);
}

/** A digest of what a call asks for: a repeat under the same key must ask for the same. */
export function fingerprintOf(documents: readonly NewDocument[]): string {
  return sha256(JSON.stringify(documents.map(({ sourceId, contentHash, input }) => [sourceId, contentHash, input])));
}
