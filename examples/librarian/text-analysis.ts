export interface TextCounts {
  characters: number;
  words: number;
  sentences: number;
  paragraphs: number;
  readingMinutes: number;
}

const WORDS_PER_MINUTE = 220;
/** Frequent words that are not keywords. */
const STOP_WORDS = new Set(
  (
    'a about after all also an and any are as at be because been before but by can could did do does for from had has have he her ' +
    'his how i if in into is it its just more most no not of on one only or other our out over she so some such than that the their ' +
    'them then there these they this to up was we were what when where which while who will with would you your'
  ).split(' '),
);

/** Counts of a text in any script that `Intl.Segmenter` supports. */
export function countText(text: string): TextCounts {
  const words = wordsOf(text).length;
  return {
    characters: [...text].length,
    words,
    sentences: sentencesOf(text).length,
    paragraphs: text.split(/\n\s*\n/).filter((paragraph) => paragraph.trim() !== '').length,
    readingMinutes: Math.max(1, Math.round(words / WORDS_PER_MINUTE)),
  };
}

/** The most frequent words without stop words, most frequent first. */
export function keywordsOf(text: string, count: number): { word: string; count: number }[] {
  return [...frequencies(text)]
    .sort(([wordA, a], [wordB, b]) => b - a || wordA.localeCompare(wordB))
    .slice(0, count)
    .map(([word, times]) => ({ word, count: times }));
}

/** The sentences with most of the text's frequent words, in the order of the text. */
export function summarize(text: string, sentenceCount: number): string {
  const sentences = sentencesOf(text);
  const weights = frequencies(text);
  const scored = sentences.map((sentence, position) => {
    const words = wordsOf(sentence);
    const weight = words.reduce((sum, word) => sum + (weights.get(word) ?? 0), 0);
    return { sentence, position, score: weight / Math.sqrt(words.length || 1) + (position === 0 ? 1 : 0) };
  });
  const best = scored.sort((a, b) => b.score - a.score || a.position - b.position).slice(0, sentenceCount);
  return best
    .sort((a, b) => a.position - b.position)
    .map(({ sentence }) => sentence)
    .join(' ');
}

function frequencies(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of wordsOf(text)) {
    if (word.length > 2 && !STOP_WORDS.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

function wordsOf(text: string): string[] {
  const segments = new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text);
  return [...segments].filter((segment) => segment.isWordLike).map((segment) => segment.segment.toLowerCase());
}

function sentencesOf(text: string): string[] {
  const segments = new Intl.Segmenter(undefined, { granularity: 'sentence' }).segment(text.replace(/\s+/g, ' '));
  return [...segments].map((segment) => segment.segment.trim()).filter((sentence) => sentence !== '');
}
