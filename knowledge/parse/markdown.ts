import type { Nodes, Root } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { type Block, cleaned, type Extracted } from './extracted.js';

/** Markdown of more characters is divided by its lines: the parser's tree takes hundreds of times the memory of the text. */
const TREE_CHARS_MAX = 1024 * 1024;
/** Container markers before one another on a line: the parser's time grows with their square. */
const MARKERS = /^[>\s*+-]{64}/m;

/** The stretch of a node in the text. */
function span(node: Nodes): { start: number; end: number } | undefined {
  const start = node.position?.start.offset;
  const end = node.position?.end.offset;
  return start === undefined || end === undefined || end <= start ? undefined : { start, end };
}

/** The lines of a stretch as blocks: lines of a table are rows, others join to text. */
function* linesOf(text: string, start: number, end: number): Generator<Block> {
  let open: Block | undefined;
  for (let at = start; at < end; ) {
    const feed = text.indexOf('\n', at);
    const lineEnd = feed < 0 || feed > end ? end : feed;
    const isRow = /^\s*\|/.test(text.slice(at, Math.min(lineEnd, at + 16)));
    if (open && (isRow || open.kind === 'row')) {
      yield open;
      open = undefined;
    }
    if (lineEnd > at) open = { kind: isRow ? 'row' : 'text', start: open?.start ?? at, end: lineEnd };
    at = lineEnd + 1;
  }
  if (open) yield open;
}

function* blocksOf(text: string, tree: Root): Generator<Block> {
  for (const node of tree.children) {
    const at = span(node);
    if (!at) continue;
    if (node.type === 'heading') yield { kind: 'heading', level: node.depth, ...at };
    else if (node.type === 'list') {
      for (const item of node.children) {
        const ofItem = span(item);
        if (ofItem) yield { kind: 'text', ...ofItem };
      }
    } else if (node.type === 'paragraph') yield* linesOf(text, at.start, at.end);
    else yield { kind: 'text', ...at };
  }
}

const ATX = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const FENCE = /^ {0,3}(```|~~~)/;

/** Headings by their lines alone (ATX, outside of fenced code). */
function* blocksByLine(text: string): Generator<Block> {
  let fence: string | undefined;
  let open: Block | undefined;
  const close = function* (): Generator<Block> {
    if (open) yield* linesOf(text, open.start, open.end);
    open = undefined;
  };
  for (let at = 0; at < text.length; ) {
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

/** Markdown: the text stays as it is, so that offsets are those of the file (without a byte-order mark, with line feeds). */
export function readMarkdown(content: string): Extracted {
  const text = cleaned(content);
  const byLine = text.length > TREE_CHARS_MAX || MARKERS.test(text);
  const blocks = [...(byLine ? blocksByLine(text) : blocksOf(text, fromMarkdown(text)))];
  const first = blocks.find(({ kind }) => kind === 'heading');
  const title = first?.level === 1 ? headingText(text.slice(first.start, first.end)) : '';
  return { text, blocks, pages: [], ...(title && { title: title.slice(0, 512) }) };
}
