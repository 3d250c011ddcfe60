/** A stretch of the extracted text, in UTF-16 units. */
export interface Block {
  /** `row`: of a table, an entry of a list of records: it is kept whole in one chunk where it fits. */
  kind: 'heading' | 'text' | 'row';
  start: number;
  end: number;
  /** Of a heading, from 1 for the outermost. */
  level?: number;
  /** It says something of the document and stands under no heading, so it takes none from the chunk that it is in. */
  isFrontMatter?: boolean;
}

/** What a document says: its text, and how the text is divided. */
export interface Extracted {
  text: string;
  /** In the order of the text, without overlap. Text between them is white space. */
  blocks: Block[];
  /** Where each page begins; empty where the format has no pages. */
  pages: number[];
  /** What the document calls itself. */
  title?: string;
}

/** Lone surrogates and NUL, which no UTF-8 text and no Postgres text can hold. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is searched for
const UNFIT = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]|\u0000/g;

/** Text as it is stored: well-formed, without NUL, without a byte-order mark at its beginning, and with line feeds alone. */
export function cleaned(text: string): string {
  return text
    .replace(/^\uFEFF/, '')
    .replace(/\r\n?/g, '\n')
    .replace(UNFIT, '\uFFFD');
}

/** Builds an extracted text block by block. */
export class TextBuilder {
  readonly #parts: string[] = [];
  readonly #blocks: Block[] = [];
  readonly #pages: number[] = [];
  #length = 0;

  /** @param maxChars of the text; `onFull` throws beyond */
  constructor(
    private readonly maxChars: number,
    private readonly onFull: () => never,
  ) {}

  get length(): number {
    return this.#length;
  }

  /** A new page begins here. */
  page(): void {
    this.#separate('\n\n');
    this.#pages.push(this.#length);
  }

  /** Adds a block, on a line of its own; white space alone adds nothing. */
  add(kind: Block['kind'], text: string, level?: number): void {
    const content = cleaned(text).trim();
    if (content === '') return;
    this.#separate(kind === 'row' && this.#blocks.at(-1)?.kind === 'row' ? '\n' : '\n\n');
    const start = this.#length;
    this.#push(content);
    this.#blocks.push({ kind, start, end: this.#length, ...(level !== undefined && { level }) });
  }

  build(title?: string): Extracted {
    const named = title && cleaned(title).replace(/\s+/g, ' ').trim();
    return {
      text: this.#parts.join(''),
      blocks: this.#blocks,
      pages: this.#pages,
      ...(named && { title: named.slice(0, 512) }),
    };
  }

  #separate(by: string): void {
    const last = this.#blocks.at(-1);
    if (last && last.end === this.#length) this.#push(by);
  }

  #push(text: string): void {
    this.#length += text.length;
    if (this.#length > this.maxChars) this.onFull();
    this.#parts.push(text);
  }
}
