import mammoth from 'mammoth';
import yauzl from 'yauzl';
import { PARSE_BOUNDS } from './bounds.js';
import type { Extracted } from './extracted.js';
import { readHtml } from './html.js';
import { ParseError } from './parse-error.js';

const TOO_LARGE = () => new ParseError('TOO_LARGE', 'The DOCX unpacks to more than a document may be.');

/**
 * Unpacks every file of an archive, counting, and keeps nothing: what an archive says of its sizes may be a lie.
 * @throws ParseError TOO_LARGE, DAMAGED, ENCRYPTED
 */
async function checkArchive(content: Buffer): Promise<void> {
  const archive = await yauzl.fromBufferPromise(content, { validateEntrySizes: true });
  if (archive.entryCount > PARSE_BOUNDS.archiveFiles) throw TOO_LARGE();
  let unpacked = 0;
  for await (const entry of archive.eachEntry()) {
    if (entry.isEncrypted()) throw new ParseError('ENCRYPTED', 'The DOCX is encrypted.');
    if (unpacked + entry.uncompressedSize > PARSE_BOUNDS.unpackedBytes) throw TOO_LARGE();
    for await (const chunk of await archive.openReadStreamPromise(entry)) {
      unpacked += (chunk as Buffer).length;
      if (unpacked > PARSE_BOUNDS.unpackedBytes) throw TOO_LARGE();
    }
  }
}

/** A DOCX: by way of HTML, which keeps headings and tables. @throws ParseError ENCRYPTED, DAMAGED, TOO_LARGE */
export async function readDocx(content: Uint8Array): Promise<Extracted> {
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  try {
    await checkArchive(buffer);
    const ignored = { convertImage: mammoth.images.imgElement(async () => ({ src: '' })) };
    const { value } = await mammoth.convertToHtml({ buffer }, ignored);
    return readHtml(value);
  } catch (error) {
    if (error instanceof ParseError) throw error;
    throw new ParseError('DAMAGED', 'The DOCX is damaged.');
  }
}
