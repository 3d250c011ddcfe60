import type { Nodes, Root } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { type Block, cleaned, type Extracted } from './extracted.js';

/** Markdown of more characters is divided by its lines: the parser's tree takes hundreds of times the memory of the text. */
const TREE_CHARS_MAX = 1024 * 1024;
/** Container markers before one another on a line: the parser's time grows with their square. */
const MARKERS = /^[>\s*+-]{64}/m;

/** The stretch of a node in the text. */
function span(node: Nodes, offset: number): { start: number; end: number } | undefined {
  const start = node.position?.start.offset;
  const end = node.position?.end.offset;
  if (start === undefined || end === undefined || end <= start) return undefined;
  return { start: start + offset, end: end + offset };
}

/** What stands before the content of a line: marks of quotes and lists. */
const CONTAINERS = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*[ \t]*/;
/** The line between the head of a table and its rows. */
const DELIMITER = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
/** Of a line, to see whether it is one of a table. */
const LINE_CHARS = 4_096;

/** A line without its end and the marks before its content. */
interface Line {
  start: number;
  end: number;
  content: string;
}

function lineAt(text: string, start: number, end: number): Line | undefined {
  if (start >= end) return undefined;
  const feed = text.indexOf('\n', start);
  const lineEnd = feed < 0 || feed > end ? end : feed;
  const content = text.slice(start, Math.min(lineEnd, start + LINE_CHARS)).replace(CONTAINERS, '');
  return { start, end: lineEnd, content };
}

const isDelimiter = (line: Line | undefined): boolean =>
  Boolean(line?.content.includes('|') && DELIMITER.test(line.content));

/**
 * The lines of a stretch as blocks: lines of a table are rows, others join to text. A line is one of a table where it begins with `|`, and
 * where it stands around or below a delimiter line with other lines that have a `|`.
 */
function* linesOf(text: string, start: number, end: number): Generator<Block> {
  let open: Block | undefined;
  let inTable = false;
  let next: Line | undefined;
  for (let line = lineAt(text, start, end); line; line = next) {
    next = lineAt(text, line.end + 1, end);
    inTable = line.content.includes('|') && (inTable || isDelimiter(next) || isDelimiter(line));
    const isRow = inTable || line.content.startsWith('|');
    if (open && (isRow || open.kind === 'row')) {
      yield open;
      open = undefined;
    }
    if (line.end > line.start) {
      open = { kind: isRow ? 'row' : 'text', start: open?.start ?? line.start, end: line.end };
    }
  }
  if (open) yield open;
}

/** @param offset of the parsed stretch in the text */
function* blocksOf(text: string, tree: Root, offset: number): Generator<Block> {
  for (const node of tree.children) {
    const at = span(node, offset);
    if (!at) continue;
    if (node.type === 'heading') yield { kind: 'heading', level: node.depth, ...at };
    else if (node.type === 'list') {
      for (const item of node.children) {
        const ofItem = span(item, offset);
        if (ofItem) yield* linesOf(text, ofItem.start, ofItem.end);
      }
    } else if (node.type === 'paragraph' || node.type === 'blockquote') yield* linesOf(text, at.start, at.end);
    else yield { kind: 'text', ...at };
  }
}

const ATX = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const FENCE = /^ {0,3}(```|~~~)/;

/** Headings by their lines alone (ATX, outside of fenced code). @param from where to begin */
function* blocksByLine(text: string, from: number): Generator<Block> {
  let fence: string | undefined;
  let open: Block | undefined;
  const close = function* (): Generator<Block> {
    if (open) yield* linesOf(text, open.start, open.end);
    open = undefined;
  };
  for (let at = from; at < text.length; ) {
    const feed = text.indexOf('\n', at);
    const end = feed < 0 ? text.length : feed;
    const head = text.slice(at, Math.min(end, at + 128));
    const [, marks] = (fence === undefined && ATX.exec(head)) || [];
    const [, opener] = FENCE.exec(head) ?? [];
    if (opener && fence === undefined) fence = opener;
    else if (opener === fence) fence = undefined;
    if (marks || (head.trim() === '' && end - at <= 128)) yield* close();
    if (marks) yield { kind: 'heading', level: marks.length, start: at, end };
    else if (head.trim() !== '' || end - at > 128) open = { kind: 'text', start: open?.start ?? at, end };
    at = end + 1;
  }
  yield* close();
}

/** The words of a heading's line, without its marks. */
export function headingText(line: string): string {
  return line
    .replace(/^ {0,3}#{1,6}[ \t]*/, '')
    .replace(/[ \t]+#+[ \t]*$/, '')
    .replace(/\n\s*(=+|-+)\s*$/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Front matter begins a file, in YAML between two lines, the first of it with a key; longer ones are none. */
const FRONT_MATTER = /^---[ \t]*\n(["'\w][^\n]*?:(?:[ \t][^\n]*)?(?:\n[\s\S]*?)??)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/;
const FRONT_MATTER_CHARS = 64 * 1024;
/** A title in one line of front matter, in quotes or not. */
const TITLE = /^title:[ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'>|&*!#][^\n]*))/m;

/** The front matter of a text: its content, and where the text goes on. */
function frontMatterOf(text: string): { start: number; end: number; bodyStart: number; title: string | undefined } {
  const found = FRONT_MATTER.exec(text.slice(0, FRONT_MATTER_CHARS));
  if (!found) return { start: 0, end: 0, bodyStart: 0, title: undefined };
  const [whole, content = ''] = found;
  const start = text.indexOf('\n') + 1;
  const [, double, single, plain] = TITLE.exec(content) ?? [];
  const title = (double ?? single ?? plain)?.trim();
  return { start, end: start + content.length, bodyStart: whole.length, title };
}

/**
 * Markdown: the text stays as it is, so that offsets are those of the file (without a byte-order mark, with line feeds). Front matter is text
 * of the document, and names its title; else the first heading of the first level does.
 */
export function readMarkdown(content: string): Extracted {
  const text = cleaned(content);
  const { start, end, bodyStart, title: named } = frontMatterOf(text);
  const byLine = text.length > TREE_CHARS_MAX || MARKERS.test(text);
  const body = byLine ? blocksByLine(text, bodyStart) : blocksOf(text, fromMarkdown(text.slice(bodyStart)), bodyStart);
  const blocks: Block[] = [
    ...(end > start ? [{ kind: 'text' as const, start, end, isFrontMatter: true }] : []),
    ...body,
  ];
  const top = blocks.find(({ kind, level }) => kind === 'heading' && level === 1);
  const title = named || (top ? headingText(text.slice(top.start, Math.min(top.end, top.start + 1_000))) : '');
  return { text, blocks, pages: [], ...(title && { title: title.slice(0, 512) }) };
}
