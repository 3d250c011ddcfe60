import { visitTexts } from '../places/members.js';
import { pathsIn, readPath, segmentsOf, type UnsafePath } from '../places/paths.js';
import type { Find } from './guarded-content.js';

/** Paths that tool calls may use. */
export interface PathRules {
  /** Absolute directories, normalised by `rootOf`; none: any directory. */
  roots: readonly string[];
}

const REASONS: Record<UnsafePath, string> = {
  too_long: 'The path is too long to tell where it leads.',
  encoded: 'The path is encoded more than once, or overlong.',
  nul: 'The path holds a NUL character.',
  traversal: 'The path leaves its directory by `..`.',
};

/** A configured root in the form that paths are compared in. */
export function rootOf(root: string): string {
  return normalPath(root.replaceAll('\\', '/'));
}

/** Finds paths that leave the allowed roots, and forms that no root can permit: `..`, NUL, escapes of them, too long ones. */
export function findPaths(args: Readonly<Record<string, unknown>>, rules: PathRules): Find[] {
  const found: Find[] = [];
  visitTexts('arguments', '', args, (path, key, text) => {
    for (const named of pathsIn(key, text)) {
      const problem = named.inProse ? undefined : problemOf(named.text, rules);
      if (problem) found.push({ ...problem, path });
    }
  });
  return found;
}

function problemOf(given: string, { roots }: PathRules): Omit<Find, 'path'> | undefined {
  const read = readPath(given);
  if ('unsafe' in read) return { rule: read.unsafe, reason: REASONS[read.unsafe] };
  if (roots.length === 0 || isInside(read.path, roots)) return undefined;
  return { rule: 'outside_roots', reason: 'The path is outside the allowed roots.' };
}

function isInside(decoded: string, roots: readonly string[]): boolean {
  const isShare = decoded.startsWith('//');
  const path = normalPath(localPath(decoded));
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

function normalPath(path: string): string {
  const joined = segmentsOf(path).join('/');
  return path.startsWith('/') ? `/${joined}` : joined.replace(/^[a-z](?=:)/, (drive) => drive.toUpperCase());
}
