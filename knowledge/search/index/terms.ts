/** Words that say nothing about what a text is about. Rarity would tell in a large knowledge base, and not in a small one. */
const STOP_WORDS = new Set(
  `a about all an and any are as at be been but by can could did do does for from had has have how i if in into is it its me my no not of on
  or our shall should so some than that the their them then there these they this those to up us was we were what when where which who whom
  whose why will with would you your`.split(/\s+/),
);

/** Letters and digits, joined by the marks that hold identifiers, versions and addresses together. */
const WORDS = /[\p{L}\p{N}]+(?:[._\-/:@#'’+][\p{L}\p{N}]+)*/gu;
const JOINTS = /[._\-/:@#'’+]/;
/** Scripts that do not separate words: their pairs of characters are the terms. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
/** Accents, and characters of no width that stand inside words: soft hyphens, joiners. */
const MARKS = /[\p{M}\u00AD\u2060\uFEFF]+/gu;
/** Longer ones are no words: encoded data, for example. */
const TERM_MAX = 64;
/** Text that needs no normalization, and its words in lower case: finding them is several times quicker. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are ASCII too
const ASCII = /^[\x00-\x7f]*$/;
const ASCII_WORDS = /[a-z0-9]+(?:[._\-/:@#'+][a-z0-9]+)*/g;
/** Words whose terms are remembered: texts use the same ones again and again, and finding a stem takes as long as all the rest. */
const REMEMBERED_MAX = 50_000;

const hasVowel = (text: string): boolean => /[aeiouy]/.test(text);

function withoutPlural(word: string): string {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|x|z|ch|sh)es$/.test(word)) return word.slice(0, -2);
  return /[^su]s$/.test(word) && !word.endsWith('is') ? word.slice(0, -1) : word;
}

/** The part that the forms of an English word share, roughly: `retries`, `retrying` and `retried` become `retry`. */
function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let rest = withoutPlural(word);
  const ending = /(?:ing|ed)$/.exec(rest)?.[0];
  const base = ending ? rest.slice(0, -ending.length) : '';
  if (rest.endsWith('ied') && rest.length > 4) rest = `${rest.slice(0, -3)}y`;
  else if (base.length >= 3 && hasVowel(base)) rest = /([^aeioulsz])\1$/.test(base) ? base.slice(0, -1) : base;
  return rest.length > 3 && rest.endsWith('e') ? rest.slice(0, -1) : rest;
}

function unspacedTerms(word: string): string[] {
  const characters = [...word];
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

function termsOfWord(word: string): string[] {
  if (UNSPACED.test(word)) return unspacedTerms(word);
  const parts = word.split(JOINTS);
  const terms = parts.map((part) => stem(part).slice(0, TERM_MAX));
  return parts.length > 1 ? [...terms, word.slice(0, TERM_MAX)] : terms;
}

const remembered = new Map<string, readonly string[]>();

function knownTerms(word: string): readonly string[] {
  const known = remembered.get(word);
  if (known) return known;
  const copy = Buffer.from(word).toString(); // a part of a string keeps the whole of it in memory
  const terms = termsOfWord(copy);
  if (copy.length > TERM_MAX) return terms;
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  remembered.set(copy, terms);
  return terms;
}

/** Forgets the words of all texts so far. */
export function forgetTerms(): void {
  remembered.clear();
}

/**
 * The terms of a text, in its order: words in lower case without accents, English ones by their stem. `ERR_CONN-7` gives `err`, `conn`, `7` and
 * `err_conn-7`.
 */
export function termsOf(text: string): string[] {
  const isAscii = ASCII.test(text);
  const plain = (isAscii ? text : text.normalize('NFKD').replace(MARKS, '')).toLowerCase();
  const terms: string[] = [];
  for (const word of plain.match(isAscii ? ASCII_WORDS : WORDS) ?? []) terms.push(...knownTerms(word));
  return terms;
}

/** The different terms of a query without stop words, unless it has nothing else. */
export function queryTerms(query: string): string[] {
  const all = [...new Set(termsOf(query))];
  const telling = all.filter((term) => !STOP_WORDS.has(term));
  return telling.length > 0 ? telling : all;
}
