/** Characters that show nothing and split what a reader sees as one word: soft hyphens, zero-width and bidi controls, variation selectors, tags. */
const INVISIBLE =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\u{e0000}-\u{e0fff}]/gu;
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
