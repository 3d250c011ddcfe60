/** Characters that show nothing and split what a reader sees as one word: soft hyphens, zero-width and bidi controls, variation selectors, tags. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
/** More marks on one letter than any language writes. Sorting a long run of them takes quadratic time, so it is cut first (UAX #15, stream-safe). */
const MARKS = /(\p{M}{30})\p{M}+/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const ASCII = /^[\x00-\x7f]*$/;

/** The text as a reader sees it: compatibility forms folded (NFKC), what is invisible removed. In linear time. ASCII stays as it is. */
export function visibleText(text: string): string {
  if (ASCII.test(text)) return text;
  return text.replace(INVISIBLE, '').replace(MARKS, '$1').normalize('NFKC');
}

const ESCAPES = /(?:%[0-9A-Fa-f]{2})+/g;

/** Decodes percent escapes once; bytes that are not UTF-8 become U+FFFD, and a `%` that begins no escape stays. */
export function decodeOnce(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(ESCAPES, (escapes) => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'));
}
