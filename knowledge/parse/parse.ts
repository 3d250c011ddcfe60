import { readCsv } from './csv.js';
import { detectType, MEDIA_TYPES, type TypeHints } from './detect-type.js';
import { readDocx } from './docx.js';
import type { Extracted } from './extracted.js';
import { readHtml } from './html.js';
import { readJson } from './json.js';
import { readMarkdown } from './markdown.js';
import { ParseError } from './parse-error.js';
import { readPdf } from './pdf.js';
import { readPlainText } from './plain-text.js';

async function read(content: Uint8Array, hints: TypeHints): Promise<{ extracted: Extracted; contentType: string }> {
  const detected = await detectType(content, hints);
  const contentType = MEDIA_TYPES[detected.type];
  const extracted = async (): Promise<Extracted> => {
    switch (detected.type) {
      case 'pdf':
        return readPdf(content);
      case 'docx':
        return readDocx(content);
      case 'html':
        return readHtml(detected.text);
      case 'csv':
        return readCsv(detected.text);
      case 'json':
        return readJson(detected.text);
      case 'markdown':
        return readMarkdown(detected.text);
      case 'text':
        return readPlainText(detected.text);
      default:
        return detected satisfies never;
    }
  };
  return { extracted: await extracted(), contentType };
}

/** Reads a document of any known type. @throws ParseError */
export async function parseDocument(content: Uint8Array, hints: TypeHints) {
  const parsed = await read(content, hints);
  if (parsed.extracted.blocks.length === 0) throw new ParseError('EMPTY', 'The document has no text.');
  return parsed;
}
