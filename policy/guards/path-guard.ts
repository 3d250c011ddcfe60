import { decodeOnce, visibleText } from './normalise.js';
import type { Find } from './types.js';

/** Members that hold paths, whatever their values look like: `path`, `file_name`, `outputDir`, `cwd`. */
const PATH_KEY = /(?:^|[_.-])(?:path|file|filename|filepath|dir|directory|folder|cwd|root)s?$/;
/** Members whose words are looked at one by one. */
const COMMAND_KEY = /(?:^|[_.-])(?:command|cmd|shell|script)$/;
/** What begins like a path: absolute, from the home directory, a drive, a network share, relative with dots, a file URL. */
const PATH_START = /^(?:[\\/]|~|\.{1,2}(?:[\\/]|$)|[A-Za-z]:[\\/]|file:|%2e%2e|%2f|%5c|\.\.%)/i;
/** Characters that paths outside a path member do not have: it is code, markup or a sentence. */
const NO_PATH = /[\s<>"'`|;{}()=]|\/\*|^\/\//;
const PATH_CHARS_MAX = 4_096;
/** Encoded dots, separators and NUL that are still there after decoding once, and overlong forms of them. */
const ENCODED_AGAIN = /%(?:2e|2f|5c|00)/i;
const OVERLONG = /%c0%(?:ae|af|2e|2f|80)|%c1%9c|%e0%80%(?:ae|af)/i;

/** Paths that tool calls may use. */
export interface PathRules {
  /** Absolute directories, normalised by `rootOf`; none: any directory. */
  roots: readonly string[];
}

/** A configured root in the form that paths are compared in. */
export function rootOf(root: string): string {
  return withoutTrailingSlash(normalPath(root.replaceAll('\\', '/')));
}

/** Finds paths that leave the allowed roots, and forms that no root can permit: `..`, NUL, escapes of them. */
export function findPaths(args: Readonly<Record<string, unknown>>, rules: PathRules): Find[] {
  const found: Find[] = [];
  visit('arguments', '', args, (path, key, text) => {
    for (const candidate of candidatesIn(key, text)) {
      const problem = problemOf(candidate, rules);
      if (problem) found.push({ ...problem, path });
    }
  });
  return found;
}

type Visitor = (path: string, key: string, text: string) => void;

/** Calls `visitor` with every string and the name of the member that holds it, through arrays. The depth is bounded at the edge. */
export function visit(path: string, key: string, value: unknown, visitor: Visitor): void {
  if (typeof value === 'string') visitor(path, key, value);
  else if (Array.isArray(value)) value.forEach((item, index) => visit(`${path}[${index}]`, key, item, visitor));
  else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) visit(`${path}.${name}`, inSnakeCase(name), member, visitor);
  }
}

function inSnakeCase(name: string): string {
  return name.length > 64 ? '' : name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}

function candidatesIn(key: string, text: string): string[] {
  if (COMMAND_KEY.test(key)) return text.split(/[\s"'`=;|&<>()]+/).filter(looksLikePath);
  const trimmed = text.length > PATH_CHARS_MAX ? '' : text.trim();
  return PATH_KEY.test(key) || looksLikePath(trimmed) ? [trimmed] : [];
}

function looksLikePath(text: string): boolean {
  if (text.length < 2 || NO_PATH.test(text)) return false;
  return PATH_START.test(text) || TRAVERSAL.test(text);
}

/** A `..` between separators, or at an end; also in a text that only contains one. */
const TRAVERSAL = /(?:^|[\\/])\.\.(?:[\\/]|$)/;

function problemOf(given: string, { roots }: PathRules): Omit<Find, 'path'> | undefined {
  if (OVERLONG.test(given)) return { rule: 'encoded', reason: 'The path holds an overlong encoding.' };
  const decoded = decodeOnce(given).normalize('NFC');
  if (decoded.includes('\0')) return { rule: 'nul', reason: 'The path holds a NUL character.' };
  if (ENCODED_AGAIN.test(decoded)) return { rule: 'encoded', reason: 'The path is encoded more than once.' };
  if (TRAVERSAL.test(visibleText(decoded))) return { rule: 'traversal', reason: 'The path leaves its directory by `..`.' };
  if (roots.length === 0 || isInside(decoded, roots)) return undefined;
  return { rule: 'outside_roots', reason: 'The path is outside the allowed roots.' };
}

function isInside(decoded: string, roots: readonly string[]): boolean {
  const isShare = /^[\\/]{2}/.test(decoded);
  const path = normalPath(localPath(decoded).replaceAll('\\', '/'));
  if (/^[~$%]/.test(path)) return false; // expanded by whoever opens it, to a place that is not known here
  const isAbsolute = path.startsWith('/') || /^[A-Za-z]:/.test(path);
  if (!isAbsolute) return true;
  return !isShare && roots.some((root) => path === root || path.startsWith(root === '/' ? '/' : `${root}/`));
}

/** The path of a file URL; any other text as it is. */
function localPath(text: string): string {
  if (!/^file:/i.test(text)) return text;
  const rest = text.slice('file:'.length);
  const [, host, path] = /^\/\/([^/]*)(\/.*)?$/.exec(rest) ?? [];
  return host === undefined || host === '' || host === 'localhost' ? (path ?? rest) : `~${host}`;
}

/** Without empty segments and those of one dot. */
function normalPath(path: string): string {
  const kept = path.split('/').filter((segment) => segment !== '' && segment !== '.');
  const joined = kept.join('/');
  return path.startsWith('/') ? `/${joined}` : joined.replace(/^[a-z](?=:)/, (drive) => drive.toUpperCase());
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
