export interface Passage {
  id: string;
  title: string;
  heading: string;
  text: string;
}
export function readPassages(): Passage[];
export function readQueries(kind: 'paraphrase' | 'exact'): { expected: string; query: string }[];
export function quality(ranks: readonly number[]): { hitAt5: number; mrr: number };
