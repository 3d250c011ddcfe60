import { detect } from 'chardet';
import iconv from 'iconv-lite';
import { ParseError } from './parse-error.js';

/** Bytes that detection looks at. */
const SAMPLE_BYTES = 64 * 1024;
/** Characters that no text has, in a share beyond which the bytes are no text. */
const CONTROL_SHARE_MAX = 0.02;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is counted
const CONTROLS = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The charset that the first bytes name: a byte-order mark. */
export function markedCharset(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return undefined;
}

function asUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined; // another charset
  }
}

function hasControls(text: string): boolean {
  const sample = text.slice(0, SAMPLE_BYTES);
  return (sample.match(CONTROLS)?.length ?? 0) > sample.length * CONTROL_SHARE_MAX;
}

/** Whether bytes are text for sure, whatever their first ones may look like. */
export function isUtf8Text(bytes: Uint8Array): boolean {
  const text = asUtf8(bytes);
  return text !== undefined && !hasControls(text);
}

function refuseBinary(text: string): string {
  if (!hasControls(text)) return text;
  throw new ParseError('UNSUPPORTED_TYPE', 'The content is neither text nor of a known type.');
}

/**
 * Decodes text. A byte-order mark counts first, then valid UTF-8, then the charset that the caller or the document names, and last what the
 * bytes look like.
 * @param named a charset from `content_type` or from the document
 */
export function decodeText(content: Uint8Array, named?: string): string {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const marked = markedCharset(bytes);
  if (marked && marked !== 'utf-8') return refuseBinary(iconv.decode(bytes, marked));
  const text = asUtf8(bytes);
  if (text !== undefined) return refuseBinary(text);
  const wanted = named?.toLowerCase();
  const known = wanted && !/^utf-?8$/.test(wanted) && iconv.encodingExists(wanted) ? wanted : undefined;
  const detected = known ?? detect(bytes.subarray(0, SAMPLE_BYTES)) ?? 'windows-1252';
  // Broken UTF-8 keeps its readable parts.
  const charset = iconv.encodingExists(detected) ? detected : 'utf-8';
  return refuseBinary(iconv.decode(bytes, charset));
}
