import { fileTypeFromBuffer } from 'file-type';
import { decodeText, isSurelyText } from './charset.js';
import { ParseError } from './parse-error.js';

/** What a document is read as. */
export type DocumentType = 'pdf' | 'docx' | 'html' | 'csv' | 'json' | 'markdown' | 'text';

/** What the caller, or the server of a URL, says of a document. */
export interface TypeHints {
  content_type?: string | undefined;
  filename?: string | undefined;
}

export const MEDIA_TYPES: Record<DocumentType, string> = {
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  html: 'text/html',
  csv: 'text/csv',
  json: 'application/json',
  markdown: 'text/markdown',
  text: 'text/plain',
};

const BY_MEDIA_TYPE: Record<string, DocumentType> = {
  ...Object.fromEntries(Object.entries(MEDIA_TYPES).map(([type, media]) => [media, type as DocumentType])),
  'application/xhtml+xml': 'html',
  'text/x-markdown': 'markdown',
  'text/tab-separated-values': 'csv',
};
const BY_EXTENSION: Record<string, DocumentType> = {
  pdf: 'pdf',
  docx: 'docx',
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  csv: 'csv',
  tsv: 'csv',
  json: 'json',
  md: 'markdown',
  markdown: 'markdown',
  txt: 'text',
  log: 'text',
};
const TEXTUAL = new Set<DocumentType | undefined>(['html', 'csv', 'json', 'markdown', 'text', undefined]);

const HTML_START = /<(!doctype\s+html|html[\s>]|head[\s>]|body[\s>])/iy;
const MARKDOWN_HEADING = /^ {0,3}#{1,6}[ \t]+\S/m;
const SAMPLE_CHARS = 64 * 1024;

function mediaTypeOf(contentType: string | undefined): { media: string | undefined; charset: string | undefined } {
  const [media, ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([\w:.-]+)/.exec(one)?.[1]).find(Boolean);
  return { media: media?.trim() || undefined, charset };
}

function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // a text that starts with a bracket
  }
}

/** Whether a text begins as HTML, perhaps behind comments. Each character is looked at once, whatever the comments hold. */
function startsAsHtml(text: string): boolean {
  const content = /\S/g;
  for (let at = 0; ; ) {
    content.lastIndex = at;
    const start = content.exec(text)?.index ?? text.length;
    if (!text.startsWith('<!--', start)) {
      HTML_START.lastIndex = start;
      return HTML_START.test(text);
    }
    const end = text.indexOf('-->', start + 4);
    if (end < 0) return false;
    at = end + 3;
  }
}

/** The type of a text that no hint names: what it looks like. */
function lookOf(text: string): DocumentType {
  if (startsAsHtml(text.slice(0, SAMPLE_CHARS))) return 'html';
  if (isJson(text)) return 'json';
  return MARKDOWN_HEADING.test(text.slice(0, SAMPLE_CHARS)) ? 'markdown' : 'text';
}

function mislabeled(hinted: DocumentType, found: string): ParseError {
  return new ParseError('DAMAGED', `The document is called ${MEDIA_TYPES[hinted]}, but it is ${found}.`);
}

function hintedType({ content_type, filename }: TypeHints): DocumentType | undefined {
  const { media } = mediaTypeOf(content_type);
  const byName = BY_EXTENSION[/\.([A-Za-z0-9]+)$/.exec(filename ?? '')?.[1]?.toLowerCase() ?? ''];
  const byMedia = media === undefined ? undefined : BY_MEDIA_TYPE[media];
  // Servers call many files text/plain.
  return byMedia === 'text' ? (byName ?? (content_type === undefined ? undefined : byMedia)) : (byMedia ?? byName);
}

/** A document's type, and its text where it is a text. */
export type Detected = { type: 'pdf' | 'docx' } | { type: Exclude<DocumentType, 'pdf' | 'docx'>; text: string };

/**
 * Finds out what a document is. Its bytes count for more than what it is called.
 * @throws ParseError UNSUPPORTED_TYPE for a binary file of another type, DAMAGED for one that is not what it is called, EMPTY
 */
export async function detectType(content: Uint8Array, hints: TypeHints): Promise<Detected> {
  if (content.length === 0) throw new ParseError('EMPTY', 'The document is empty.');
  const hinted = hintedType(hints);
  const found = await fileTypeFromBuffer(content);
  if (found?.mime === MEDIA_TYPES.pdf) return { type: 'pdf' };
  if (found?.mime === MEDIA_TYPES.docx) return { type: 'docx' };
  if (found?.mime === 'application/x-cfb' && hinted === 'docx') {
    throw new ParseError('ENCRYPTED', 'The DOCX is encrypted, or is of an old version of Word.');
  }
  if (hinted === 'docx' && found?.mime === 'application/zip') return { type: 'docx' };
  const { charset: byCaller } = mediaTypeOf(hints.content_type);
  const isText = isSurelyText(content, byCaller);
  if (hinted && !TEXTUAL.has(hinted)) throw mislabeled(hinted, isText ? 'text' : (found?.mime ?? 'of another type'));
  if (found && (!isText || found.mime === 'application/rtf')) {
    throw new ParseError('UNSUPPORTED_TYPE', `Documents of the type ${found.mime} cannot be read.`);
  }
  const head = Buffer.from(content.subarray(0, 2_048)).toString('latin1');
  const inDocument = /charset\s*=\s*["']?([\w:.-]+)/i.exec(head)?.[1]?.toLowerCase();
  const text = decodeText(content, { byCaller, inDocument });
  if (text.trim() === '') throw new ParseError('EMPTY', 'The document is empty.');
  const type = (hinted ?? lookOf(text)) as Exclude<DocumentType, 'pdf' | 'docx'>;
  return { type, text };
}
