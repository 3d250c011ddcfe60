import { ParseError } from './parse-error.js';

/** Bounds of one document while it is read. */
export const PARSE_BOUNDS = {
  /** Of the extracted text, in UTF-16 units. */
  textChars: 20 * 1024 * 1024,
  pages: 5_000,
  /** Of the files of a DOCX, unpacked, together. */
  unpackedBytes: 100 * 1024 * 1024,
  archiveFiles: 5_000,
  /** Elements inside one another in HTML; deeper text counts to the element at this depth. */
  nesting: 256,
  chunks: 50_000,
} as const;

/** For a text that is longer than a document may say. */
export function tooMuchText(): never {
  throw new ParseError('TOO_LARGE', `The document has more than ${PARSE_BOUNDS.textChars} characters of text.`);
}
