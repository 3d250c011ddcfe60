import { extractText, getDocumentProxy, getMeta } from 'unpdf';
import { PARSE_BOUNDS, tooMuchText } from './bounds.js';
import { type Extracted, TextBuilder } from './extracted.js';
import { ParseError } from './parse-error.js';

function explained(error: unknown): ParseError {
  if (error instanceof ParseError) return error;
  const name = (error as { name?: string } | null)?.name;
  if (name === 'PasswordException') return new ParseError('ENCRYPTED', 'The PDF needs a password.');
  return new ParseError('DAMAGED', 'The PDF is damaged.');
}

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

async function open(content: Uint8Array): Promise<Pdf> {
  // Scripts of a document are never run; `verbosity` 0 keeps the library from the console.
  // A copy: the library wants no Buffer, and may take the memory for itself.
  return getDocumentProxy(new Uint8Array(content), {
    isEvalSupported: false,
    verbosity: 0,
    stopAtErrors: false,
  } as object);
}

async function titleOf(pdf: Pdf): Promise<string | undefined> {
  const { info } = await getMeta(pdf);
  const title = (info as { Title?: unknown } | undefined)?.Title;
  return typeof title === 'string' && title.trim() !== '' ? title : undefined;
}

/** A PDF: the text of each page. @throws ParseError ENCRYPTED, DAMAGED, NO_TEXT for pages of images, TOO_LARGE */
export async function readPdf(content: Uint8Array): Promise<Extracted> {
  try {
    const pdf = await open(content);
    if (pdf.numPages > PARSE_BOUNDS.pages) {
      throw new ParseError('TOO_LARGE', `The PDF has more than ${PARSE_BOUNDS.pages} pages.`);
    }
    const { text: pages } = await extractText(pdf, { mergePages: false });
    const builder = new TextBuilder(PARSE_BOUNDS.textChars, tooMuchText);
    for (const page of pages) {
      builder.page();
      for (const paragraph of page.split(/\n[^\S\n]*\n\s*/)) builder.add('text', paragraph);
    }
    const extracted = builder.build(await titleOf(pdf));
    if (extracted.blocks.length === 0) {
      throw new ParseError(
        'NO_TEXT',
        'The PDF has no text: its pages are images. Run text recognition (OCR) on it first.',
      );
    }
    return extracted;
  } catch (error) {
    throw explained(error);
  }
}
