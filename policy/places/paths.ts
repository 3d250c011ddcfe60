import { assignedValue, commandWords } from './commands.js';
import { isCommandKey } from './members.js';
import { decodeOnce, visibleText } from './normalise.js';

/** Members that hold paths, whatever their values look like: `path`, `file_name`, `output_dir`, `cwd`. */
const PATH_KEY = /(?:^|[_.-])(?:path|(?:file|path|dir|directory|folder)_?(?:name|path)?|cwd|root)s?$/;
const FILE_KEY = /(?:^|[_.-])files?$/;
/** What begins like a path: absolute, from the home directory, a drive, a network share, relative with dots, a file URL. */
const PATH_START = /^(?:[\\/]|~|\.{1,2}(?:[\\/]|$)|[A-Za-z]:[\\/]|file:|%2e%2e|%2f|%5c|\.\.%)/i;
/** A `..` between separators, or at an end; also in a text that only contains one. */
const TRAVERSAL = /(?:^|[\\/])\.\.(?:[\\/]|$)/;
/** A text without any of these has no `..` in it, not even encoded, full-width, or with invisible characters inside. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all but ASCII
const MAY_TRAVERSE = /\.\.|%|[^\x00-\x7f]/;
/** Characters that paths outside a path member do not have: it is code, markup or a sentence. */
const PROSE = /[\s<>"'`|;{}()=]|\/\*|^\/\//;
/** Encoded dots, separators, NUL and `%` that are still there after decoding once, and overlong forms of them. */
const ENCODED_AGAIN = /%(?:2e|2f|5c|00|25)/i;
const OVERLONG = /%c0%(?:ae|af|2e|2f|80)|%c1%9c|%e0%80%(?:ae|af)/i;
/** In base64, also as a data URL: no dot, no escape. */
const BASE64 = /^(?:data:[\w/+.;=-]{0,200},)?[\w+/=\s-]*$/;
/** No file system opens a longer one, but whoever normalises it before may. */
const PATH_CHARS_MAX = 4_096;

/** Why nobody can tell where a path leads. */
export type UnsafePath = 'too_long' | 'encoded' | 'nul' | 'traversal';

/** A path that a text names. `inProse`: it has characters that code and sentences have, and paths seldom. */
export interface NamedPath {
  text: string;
  inProse: boolean;
}

/** Whether a member of this name holds a path. */
export function isPathKey(key: string): boolean {
  return PATH_KEY.test(key);
}

/** The paths that a member names: its whole text, or words of a command. In linear time. @param key in snake case */
export function pathsIn(key: string, text: string): NamedPath[] {
  const trimmed = text.trim();
  if (isPathKey(key)) return isContent(key, trimmed) ? [] : [{ text: trimmed, inProse: false }];
  const candidates = isCommandKey(key)
    ? [...commandWords(text)].map((word) => word.text)
    : [trimmed, assignedValue(trimmed)];
  return candidates.flatMap((candidate) => {
    if (candidate.length < 2) return [];
    const begins = PATH_START.test(candidate);
    const inProse = PROSE.test(candidate);
    if (candidate.length > PATH_CHARS_MAX && !isLongPath(candidate, begins, inProse)) return [];
    return begins || traverses(candidate) ? [{ text: candidate, inProse }] : [];
  });
}

/** Whether a long text is a path all the same, which whoever normalises it makes shorter: not a document, nor an image in base64. */
function isLongPath(text: string, begins: boolean, inProse: boolean): boolean {
  if (inProse && !begins) return false;
  return traverses(text) || !isTooLong(text);
}

function isTooLong(text: string): boolean {
  return text.length > PATH_CHARS_MAX && segmentsOf(text).join('/').length > PATH_CHARS_MAX;
}

/** Whether a member such as `file` holds the content of one. */
function isContent(key: string, text: string): boolean {
  return FILE_KEY.test(key) && isTooLong(text) && BASE64.test(text);
}

function traverses(text: string): boolean {
  return MAY_TRAVERSE.test(text) && TRAVERSAL.test(visibleText(decodeOnce(text)));
}

/** What a path says once it is decoded, in NFC and with slashes; or why nobody can tell. */
export function readPath(given: string): { path: string } | { unsafe: UnsafePath } {
  if (given.length > PATH_CHARS_MAX) return { unsafe: 'too_long' };
  if (OVERLONG.test(given)) return { unsafe: 'encoded' };
  const decoded = decodeOnce(given).normalize('NFC');
  if (decoded.includes('\0')) return { unsafe: 'nul' };
  if (ENCODED_AGAIN.test(decoded)) return { unsafe: 'encoded' };
  if (TRAVERSAL.test(visibleText(decoded))) return { unsafe: 'traversal' };
  return { path: decoded.replaceAll('\\', '/') };
}

/** The segments of a path, without empty ones and those of one dot. */
export function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== '.');
}
