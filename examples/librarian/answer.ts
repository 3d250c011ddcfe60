import type { Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import { jsonTable } from './json-table.js';
import { countText, keywordsOf, summarize } from './text-analysis.js';

const SUMMARY_SENTENCES = 3;
const KEYWORDS = 8;
const COMMAND = /^\s*(summari[sz]e|summary|count|keywords|table)\b[\s:,-]*(?:this|the following|of)?[\s:]*/i;
const HELP = `I am the fleet's librarian. Give me a text and I count its words, find its keywords and summarize it; give me JSON and I make a table.
"summarize: …", "count: …", "keywords: …" and "table: …" do one of them. Ask me a question, and I answer from the documents of the library.`;

/** The librarian's answer, in sections that can be streamed. The last one may be data. */
export function answer(parts: readonly Part[]): Part[] {
  const data = parts.find((part) => part.kind === 'data');
  if (data) return [text(jsonTable(data.data) ?? 'There is nothing in that data.')];
  const message = textOf(parts);
  const command = COMMAND.exec(message)?.[1]?.toLowerCase() ?? '';
  const subject = message.replace(COMMAND, '').trim();
  if (subject === '' || (command === '' && /^(help|hello|hi)\W*$/i.test(subject))) return [text(HELP)];
  const parsed = parseJson(subject);
  if (parsed !== undefined) return [text(jsonTable(parsed) ?? 'I make tables of objects and of lists of objects.')];
  if (command === 'table') return [text('That is not JSON that I can read.')];
  return sections(command, subject);
}

function sections(command: string, subject: string): Part[] {
  const counts = countText(subject);
  const keywords = keywordsOf(subject, KEYWORDS);
  const summary = text(summarize(subject, SUMMARY_SENTENCES));
  const countLine = text(
    `${counts.words} words in ${counts.sentences} sentences and ${counts.paragraphs} paragraphs, ${counts.characters} characters; ` +
      `about ${counts.readingMinutes} min to read.`,
  );
  const keywordLine = text(`Keywords: ${keywords.map(({ word, count }) => `${word} (${count})`).join(', ') || 'none'}`);
  if (command.startsWith('summar')) return [summary];
  if (command === 'count') return [countLine];
  if (command === 'keywords') return [keywordLine];
  return [
    text(`Summary: ${summary.text}\n`),
    text(`${keywordLine.text}\n`),
    countLine,
    { kind: 'data', data: { ...counts, keywords } },
  ];
}

function text(content: string): Part & { kind: 'text' } {
  return { kind: 'text', text: content };
}

function parseJson(subject: string): unknown {
  if (!/^[[{]/.test(subject)) return undefined;
  try {
    return JSON.parse(subject) as unknown;
  } catch {
    return undefined; // a text that starts with a bracket
  }
}
