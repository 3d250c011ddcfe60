/** Schemes whose URL parsers take any number of slashes, of both kinds, or none. */
const LENIENT_SCHEME = /^(?:https?|wss?|ftp|file|gopher|jar|php|data):/i;
/** A URL that leaves its scheme to whoever opens it: `//example.com/x`, with slashes of both kinds. */
const WITHOUT_SCHEME = /^[\\/]{2,}(?=[^\\/\s])/;
const SCHEME_CHARS = /[A-Za-z0-9+.-]/;
const SCHEME_CHARS_MAX = 32;
/** A longer authority is no host: who can tell where a client cuts it? */
export const AUTHORITY_CHARS_MAX = 2_048;
/** Characters of the longest URL up to its path. */
export const URL_SPAN = SCHEME_CHARS_MAX + AUTHORITY_CHARS_MAX;
/**
 * A URL without a scheme in a text, up to its path: where markup, a quotation or a sentence holds one, with a host that is an address (also
 * as one number) or has a dot. Elsewhere two slashes begin comments, divide, or separate the segments of paths.
 */
const WITHOUT_SCHEME_IN_TEXT =
  /(?<=^|[\s"'`(=[<>,])[\\/]{2,8}(?:[^\s"'`<>\\/?#@]{1,256}@)?(?:(?:[\p{L}\p{N}_-]{1,63}[.。]){1,9}[\p{L}\p{N}-]{1,63}[.。]?|localhost|0x[0-9a-f]{1,8}|\d{8,12}|\[[0-9a-f:.]{2,45}\])(?=[\\/:?#"'`)\]>\s,;!]|$)/giu;
/** What ends an authority in a text. A backslash does for some clients, and for others it is a part of it. */
const AUTHORITY_END = /[\s"'<>`|{}^/?#\\]/;
const AUTHORITY_END_FOR_OTHERS = /[\s"'<>`|{}^/?#]/;

/** A URL as far as it says where it leads. */
export interface Url {
  /** In lower case; '' where it has none. */
  scheme: string;
  /** User, host and port. */
  authority: string;
}

/** The URL that a whole text is, as browsers read it: without leading space, and without tabs and line ends anywhere. */
export function* wholeUrl(text: string): Generator<Url> {
  const without = WITHOUT_SCHEME.exec(text);
  if (without) {
    yield* readings(text, without[0].length, '');
    return;
  }
  const scheme = LENIENT_SCHEME.exec(text)?.[0];
  if (scheme) yield* readings(text, scheme.length, scheme.slice(0, -1).toLowerCase());
}

/** The URLs in a visible text: those with a scheme, and those that leave it to whoever opens them. In linear time. */
export function* urlsIn(visible: string): Generator<Url> {
  if (!/[\\/]/.test(visible)) return;
  yield* urlsWithScheme(visible);
  for (const [url] of visible.matchAll(WITHOUT_SCHEME_IN_TEXT))
    yield { scheme: '', authority: url.replace(/^[\\/]+/, '') };
}

/**
 * The URL whose authority begins at an index, in both readings of backslashes: for some clients one ends the authority, others read on.
 * @param readTo how far others were read already: from every backslash before it they come to the same host
 * @returns how far they are read now
 */
function* readings(text: string, index: number, scheme: string, readTo = 0): Generator<Url, number> {
  const { text: authority, end } = authorityAt(text, index, AUTHORITY_END);
  if (authority !== '') yield { scheme, authority };
  if (text[end] !== '\\' || end < readTo) return readTo;
  const other = authorityAt(text, index, AUTHORITY_END_FOR_OTHERS);
  if (other.text.includes('@')) yield { scheme, authority: other.text };
  return other.end;
}

function* urlsWithScheme(visible: string): Generator<Url> {
  let readTo = 0;
  for (let colon = visible.indexOf(':'); colon !== -1; colon = visible.indexOf(':', colon + 1)) {
    if (!isSlash(visible[colon + 1])) continue;
    let start = colon;
    while (start > 0 && colon - start < SCHEME_CHARS_MAX && SCHEME_CHARS.test(visible[start - 1] as string)) start--;
    // A path of a drive (`C:\…`), a ratio (`1:/2`): nothing that has a host.
    if (colon - start < 2) continue;
    const scheme = visible
      .slice(start, colon)
      .toLowerCase()
      .replace(/^[^a-z]+/, '');
    readTo = yield* readings(visible, colon + 1, scheme, readTo);
  }
}

/** The authority behind the slashes at an index. One that is too long is cut to one character more than `AUTHORITY_CHARS_MAX`. */
function authorityAt(text: string, index: number, ends: RegExp): { text: string; end: number } {
  let start = index;
  while (isSlash(text[start])) start++;
  let end = start;
  while (end < text.length && end - start <= AUTHORITY_CHARS_MAX && !ends.test(text[end] as string)) end++;
  return { text: text.slice(start, end), end };
}

function isSlash(char: string | undefined): boolean {
  return char === '/' || char === '\\';
}
