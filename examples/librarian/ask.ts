import type { Part } from '../../contracts/a2a/parts.js';
import { type AgentTask, type SearchResult, ToolError } from '../../sdk/index.js';

/** The knowledge base that questions are answered from. */
const LIBRARY = process.env.EXAMPLE_LIBRARY || 'library';
const RESULTS = 3;
const EXCERPT_CHARS = 600;
const QUESTION = /^\s*(?:(?:ask|search|find|look up)\b[\s:,-]+([\s\S]+)|([^\n]{3,300}\?))\s*$/i;

/** The question in a message: after "ask:", "search:" or "find:", or one line that ends with a question mark. */
export function questionIn(text: string): string | undefined {
  const [, asked, line] = QUESTION.exec(text) ?? [];
  return (asked ?? line)?.trim() || undefined;
}

/** Where a passage stands: document, headings, pages and place in the text. */
export function citationLine({ title, citation }: Pick<SearchResult, 'title' | 'citation'>): string {
  const { url, filename, headingPath, pageStart, pageEnd, charStart, charEnd } = citation;
  const pages = pageStart === pageEnd ? `page ${pageStart}` : `pages ${pageStart} to ${pageEnd}`;
  const parts = [
    title,
    headingPath.filter((heading) => heading !== title).join(' › '),
    pageStart === undefined ? '' : pages,
    `characters ${charStart} to ${charEnd}`,
    url ?? filename ?? '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** Whole words of a passage, in one paragraph. */
function excerpt(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length <= EXCERPT_CHARS ? flat : `${flat.slice(0, flat.lastIndexOf(' ', EXCERPT_CHARS))} …`;
}

/** The passages that answer a question, with their sources; as data too. */
function answerOf(results: readonly SearchResult[]): Part[] {
  if (results.length === 0) return [{ kind: 'text', text: 'The library says nothing about that.' }];
  const passages = results.map(({ text }, place) => `${excerpt(text)} [${place + 1}]`);
  const sources = results.map((result, place) => `[${place + 1}] ${citationLine(result)}`);
  const citations = results.map(({ sourceId, chunkId, title, citation }) => ({
    sourceId,
    chunkId,
    title,
    ...citation,
  }));
  return [
    { kind: 'text', text: `${passages.join('\n\n')}\n\nSources:\n${sources.join('\n')}\n` },
    { kind: 'data', data: { citations } },
  ];
}

/** Answers from the documents of the library. */
export async function askLibrary(task: Pick<AgentTask, 'search'>, question: string): Promise<Part[]> {
  try {
    return answerOf((await task.search(LIBRARY, question, { topK: RESULTS })).results);
  } catch (error) {
    if (!(error instanceof ToolError) || error.code !== 'NOT_FOUND') throw error;
    const text = `There is no library yet: create the knowledge base "${LIBRARY}" and put documents into it.`;
    return [{ kind: 'text', text }];
  }
}
