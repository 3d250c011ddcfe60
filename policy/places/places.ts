import { hostsIn, unicodeHost } from './hosts.js';
import { visitTexts } from './members.js';
import { pathsIn, readPath, segmentsOf } from './paths.js';

/** Paths and hosts that arguments name, in the form in which policies compare them. */
export interface Places {
  paths: readonly string[];
  /** There is one whose place nobody can tell: with `..`, NUL, an encoding inside an encoding, or too long. */
  hasUnsafePath: boolean;
  hosts: readonly Host[];
  /** There is a URL of which nobody can tell where it leads. */
  hasUnreadableHost: boolean;
  /** Characters that were read. */
  chars: number;
}

/** A host in the forms that globs may have: in ASCII, and an international name as people write it. */
export type Host = readonly [ascii: string, unicode?: string];

/** Decoded once, in NFC, with slashes and without empty segments and those of one dot; null: nobody can tell where it leads. */
function normalPath(given: string): string | null {
  const read = readPath(given.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/i, ''));
  if ('unsafe' in read) return null;
  return `${read.path.startsWith('/') ? '/' : ''}${segmentsOf(read.path).join('/')}`;
}

/** The paths and hosts that arguments name: in members of such names, in commands, and in texts that look like them. */
export function placesIn(args: Readonly<Record<string, unknown>>): Places {
  const paths = new Set<string>();
  const hosts = new Set<string>();
  let hasUnsafePath = false;
  let hasUnreadableHost = false;
  let chars = 0;
  visitTexts('', '', args, (_place, key, text) => {
    chars += text.length;
    for (const { host } of hostsIn(key, text)) {
      if (host === null) hasUnreadableHost = true;
      else hosts.add(host);
    }
    for (const named of pathsIn(key, text)) {
      const path = normalPath(named.text);
      if (path === null) hasUnsafePath = true;
      else paths.add(path);
    }
  });
  const forms = [...hosts].map((host): Host => {
    const unicode = unicodeHost(host);
    return unicode === undefined ? [host] : [host, unicode];
  });
  return { paths: [...paths], hasUnsafePath, hosts: forms, hasUnreadableHost, chars };
}
