import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('./set/', import.meta.url);

const read = (name: string): string[] => readFileSync(new URL(name, FOLDER), 'utf8').split('\n').filter(Boolean);

export interface Passage {
  id: string;
  title: string;
  heading: string;
  text: string;
}

/**
 * The committed set: short passages of handbooks that never were. A line `# key title` begins a document, each further line is a passage,
 * `heading | text`, whose id is the document's key with its number.
 */
export function readPassages(): Passage[] {
  const passages: Passage[] = [];
  for (const file of readdirSync(FOLDER)
    .filter((name) => name.startsWith('passages'))
    .sort()) {
    let document = { key: '', title: '', count: 0 };
    for (const line of read(file)) {
      const opening = /^# (\S+) (.*)$/.exec(line);
      if (opening) {
        document = { key: opening[1] ?? '', title: opening[2] ?? '', count: 0 };
        continue;
      }
      const [heading = '', text = ''] = line.split(' | ');
      document.count += 1;
      passages.push({ id: `${document.key}${document.count}`, title: document.title, heading, text });
    }
  }
  return passages;
}

/**
 * Queries, each with the one passage that answers it.
 * @param kind in other words than the passage's, or by a term that it has
 */
export function readQueries(kind: 'paraphrase' | 'exact'): { expected: string; query: string }[] {
  return read(`queries-${kind}.txt`).map((line) => {
    const [expected = '', query = ''] = line.split(' | ');
    return { expected, query };
  });
}

/**
 * Share of the queries whose passage is among the first five, and the mean reciprocal rank.
 * @param ranks where the passage of each query was found, from 1; 0 for not at all
 */
export function quality(ranks: readonly number[]): { hitAt5: number; mrr: number } {
  const hits = ranks.filter((rank) => rank > 0 && rank <= 5).length;
  const reciprocal = ranks.reduce((sum, rank) => sum + (rank > 0 ? 1 / rank : 0), 0);
  return { hitAt5: hits / ranks.length, mrr: reciprocal / ranks.length };
}
