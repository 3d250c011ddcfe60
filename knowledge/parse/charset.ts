import { detect } from 'chardet';
import iconv from 'iconv-lite';
import { ParseError } from './parse-error.js';

/** Bytes that detection looks at. */
const SAMPLE_BYTES = 64 * 1024;
/** Characters that no text has, in a share beyond which the bytes are no text. */
const CONTROL_SHARE_MAX = 0.02;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is counted
const CONTROLS = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g;

/** Charsets whose texts are valid UTF-8 too: only who wrote them can tell. */
const WIDE = /^(?:utf-?(?:7|16|32)|ucs-?[24]|iso-2022-)/;
/** How Japanese text begins in a charset that consists of ASCII bytes alone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is searched for
const ISO_2022_JP = /\u001b\$[@B]/;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The charset that the first bytes name: a byte-order mark. */
function markedCharset(bytes: Uint8Array): string | undefined {
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

/** Whether bytes are text for sure, whatever their first ones may look like. @param named by the caller */
export function isSurelyText(bytes: Uint8Array, named?: string): boolean {
  if (markedCharset(bytes) !== undefined) return true;
  const text = named !== undefined && WIDE.test(named) ? decodedAs(bytes, named) : asUtf8(bytes);
  return text !== undefined && !hasControls(text);
}

function refuseBinary(text: string): string {
  if (!hasControls(text)) return text;
  throw new ParseError('UNSUPPORTED_TYPE', 'The content is neither text nor of a known type.');
}

/** @returns undefined for a charset that nobody here knows */
function decodedAs(content: Uint8Array, charset: string): string | undefined {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  if (iconv.encodingExists(charset)) return iconv.decode(bytes, charset);
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return undefined; // no charset, or one that is too rare
  }
}

/** What bytes look like that are no UTF-8, by those around the first one that is not ASCII. */
function detected(bytes: Uint8Array): string {
  const first = bytes.findIndex((byte) => byte > 0x7f);
  const from = Math.max(0, first - SAMPLE_BYTES / 2);
  return detect(bytes.subarray(from, from + SAMPLE_BYTES)) ?? 'windows-1252';
}

/** The charsets that are named for a text. */
export interface NamedCharsets {
  /** By the caller, or the server of a URL. */
  byCaller?: string | undefined;
  inDocument?: string | undefined;
}

/**
 * Decodes text. A byte-order mark counts first, then a charset of the caller's that no text of ASCII or UTF-8 is in, then valid UTF-8, then the
 * charset that the caller or the document names, and last what the bytes look like.
 */
export function decodeText(bytes: Uint8Array, { byCaller, inDocument }: NamedCharsets = {}): string {
  const marked = markedCharset(bytes);
  const wide = byCaller !== undefined && WIDE.test(byCaller) ? byCaller : undefined;
  const certain = marked === 'utf-8' ? undefined : (marked ?? wide);
  const byName = certain && decodedAs(bytes, certain);
  if (byName !== undefined) return refuseBinary(byName);
  const text = asUtf8(bytes);
  if (text !== undefined && !ISO_2022_JP.test(text)) return refuseBinary(text);
  if (text !== undefined) return refuseBinary(decodedAs(bytes, 'iso-2022-jp') ?? text);
  const named = [byCaller, inDocument].find((name) => name !== undefined && !/^utf-?8$/.test(name) && !WIDE.test(name));
  // Broken UTF-8 keeps its readable parts.
  const decoded = (named && decodedAs(bytes, named)) ?? decodedAs(bytes, detected(bytes)) ?? decodedAs(bytes, 'utf-8');
  return refuseBinary(decoded ?? '');
}
