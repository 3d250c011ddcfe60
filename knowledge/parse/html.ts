import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { PARSE_BOUNDS, tooMuchText } from './bounds.js';
import { recordLine } from './csv.js';
import { type Extracted, TextBuilder } from './extracted.js';

type Node = DefaultTreeAdapterTypes.Node;

const SKIPPED = new Set(
  'script style noscript template svg math iframe object embed canvas audio video nav button select textarea input head'.split(
    ' ',
  ),
);
/** Elements that begin a line of their own. */
const BLOCKS = new Set(
  'p div form section article main header footer aside ul ol li dl dt dd blockquote pre figure figcaption address table caption thead tbody tfoot tr details summary hr h1 h2 h3 h4 h5 h6 body html'.split(
    ' ',
  ),
);

/** A table that is being read, or a cell. */
interface Table {
  columns: string[] | undefined;
  row: { cells: string[]; allHeaders: boolean } | undefined;
  cell: string | undefined;
}

/** Collects the text of elements as blocks. */
class HtmlReader {
  readonly builder = new TextBuilder(PARSE_BOUNDS.textChars, tooMuchText);
  title: string | undefined;
  readonly #tables: Table[] = [];
  #line = '';
  #preformatted = 0;
  #collected = 0;

  text(value: string): void {
    this.#collected += value.length;
    if (this.#collected > PARSE_BOUNDS.textChars) tooMuchText();
    const shown = this.#preformatted > 0 ? value : value.replace(/\s+/g, ' ');
    const cell = this.#openCell;
    if (cell) cell.cell += shown;
    else this.#line += shown;
  }

  /** An element begins. */
  open(name: string): void {
    if (name === 'br') this.text(this.#preformatted > 0 ? '\n' : ' ');
    if (name === 'pre') this.#preformatted += 1;
    if (BLOCKS.has(name)) this.#break();
    if (name === 'table') this.#tables.push({ columns: undefined, row: undefined, cell: undefined });
    const table = this.#tables.at(-1);
    if (!table) return;
    if (name === 'tr') table.row = { cells: [], allHeaders: true };
    if (name === 'td' || name === 'th') {
      table.row ??= { cells: [], allHeaders: true };
      table.row.allHeaders &&= name === 'th';
      table.cell = '';
    }
  }

  /** An element ends. */
  close(name: string): void {
    const heading = /^h([1-6])$/.exec(name);
    if (heading && !this.#openCell) this.#flush('heading', Number(heading[1]));
    if (BLOCKS.has(name)) this.#break();
    if (name === 'pre') this.#preformatted -= 1;
    const table = this.#tables.at(-1);
    if (!table) return;
    if (name === 'td' || name === 'th') {
      table.row?.cells.push((table.cell ?? '').replace(/\s+/g, ' ').trim());
      table.cell = undefined;
    }
    if (name === 'tr') this.#endRow(table);
    if (name === 'table') this.#tables.pop();
  }

  /** The innermost cell that is open: of the table itself, or of one around it. */
  get #openCell(): Table | undefined {
    return this.#tables.findLast(({ cell }) => cell !== undefined);
  }

  /** A line ends. Inside a cell lines are words. */
  #break(): void {
    const cell = this.#openCell;
    if (cell) cell.cell += ' ';
    else this.#flush('text');
  }

  #flush(kind: 'heading' | 'text', level?: number): void {
    this.builder.add(kind, this.#line, level);
    this.#line = '';
  }

  #endRow(table: Table): void {
    const { row } = table;
    table.row = undefined;
    if (!row || row.cells.every((cell) => cell === '')) return;
    if (row.allHeaders && !table.columns) {
      table.columns = row.cells;
      if (!this.#openCell) this.builder.add('row', row.cells.join(' | '));
      return;
    }
    const line = table.columns
      ? recordLine(table.columns, row.cells)
      : row.cells.filter((cell) => cell !== '').join(' | ');
    const outer = this.#openCell;
    if (outer) outer.cell += ` ${line} `;
    else this.builder.add('row', line);
  }

  end(): Extracted {
    this.#break();
    return this.builder.build(this.title);
  }
}

function textOf(node: Node): string {
  return 'childNodes' in node ? node.childNodes.map((child) => ('value' in child ? child.value : '')).join('') : '';
}

type Visit = { node: Node; depth: number } | { close: string };

/** HTML: headings, paragraphs and table rows; scripts, navigation and the fields of forms are left out. */
export function readHtml(content: string): Extracted {
  const reader = new HtmlReader();
  // With a stack of its own: elements may be nested a hundred thousand times.
  const stack: Visit[] = [{ node: parse(content), depth: 0 }];
  for (let visit = stack.pop(); visit; visit = stack.pop()) {
    if ('close' in visit) {
      reader.close(visit.close);
      continue;
    }
    const { node, depth } = visit;
    if (node.nodeName === '#text' && 'value' in node) reader.text(node.value);
    if (node.nodeName === 'title') reader.title ??= textOf(node);
    if (!('childNodes' in node)) continue;
    const isHead = node.nodeName === 'head';
    if (SKIPPED.has(node.nodeName) && !isHead) continue;
    const name = depth < PARSE_BOUNDS.nesting && !isHead ? node.nodeName : '';
    if (name !== '') {
      reader.open(name);
      stack.push({ close: name });
    }
    const children = isHead ? node.childNodes.filter(({ nodeName }) => nodeName === 'title') : node.childNodes;
    if (node.nodeName === 'title') continue;
    for (const child of children.toReversed()) stack.push({ node: child, depth: depth + 1 });
  }
  return reader.end();
}
