import { decodeOnce } from '../guards/normalise.js';

/** Paths and hosts that arguments name, in the form in which policies compare them. */
export interface Places {
  paths: readonly string[];
  /** There is one whose place nobody can tell: with `..`, NUL, or an encoding inside an encoding. */
  hasUnsafePath: boolean;
  hosts: readonly string[];
}

/** Members that hold paths, whatever their values look like. */
const PATH_KEY = /(?:^|[_.-])(?:path|file|filename|filepath|dir|directory|folder|cwd|root)s?$/;
/** Members that hold hosts. */
const HOST_KEY = /(?:^|[_.-])(?:host|hostname|domain|server)s?$/;
/** What begins like a path: absolute, from the home directory, a drive, relative with dots, a file URL. */
const PATH_START = /^(?:[\\/]|~|\.{1,2}(?:[\\/]|$)|[A-Za-z]:[\\/]|file:|%2e%2e|%2f|%5c)/i;
const TRAVERSAL = /(?:^|[\\/])\.\.(?:[\\/]|$)/;
/** A scheme. Of the web's schemes a URL parser takes any number of slashes, of both kinds. */
const URL_START = /^(?:[a-z][a-z0-9+.-]*:\/\/|(?:https?|wss?|ftp):)/i;
/** A URL that leaves its scheme to whoever opens it: `//example.com/x`, with slashes of both kinds. */
const WITHOUT_SCHEME = /^[\\/]{2,}[^\\/]/;
/** What a URL parser skips: before a URL, and inside it. */
const SKIPPED = /^[\s\p{Cc}]+|[\t\r\n]/gu;
const ENCODED_AGAIN = /%(?:2e|2f|5c|00|25)/i;
/** A longer text is no path. */
const PATH_CHARS_MAX = 4_096;

/** Decoded once, NFC, with slashes and without empty segments and those of one dot; null: nobody can tell where it leads. */
function normalPath(given: string): string | null {
  const text = decodeOnce(given.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/i, '')).normalize('NFC');
  const path = text.replaceAll('\\', '/');
  if (path.includes('\0') || ENCODED_AGAIN.test(path) || TRAVERSAL.test(path)) return null;
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.');
  return `${path.startsWith('/') ? '/' : ''}${segments.join('/')}`;
}

/** The host of a URL or of a text `host:port`, in lower case and ASCII; null for none. */
function hostOf(text: string): string | null {
  try {
    const { hostname } = new URL(URL_START.test(text) ? text : `http://${text}`);
    return hostname.replace(/\.$/, '').toLowerCase() || null;
  } catch {
    return null; // it names no host
  }
}

function visit(key: string, value: unknown, visitor: (key: string, text: string) => void): void {
  if (typeof value === 'string') visitor(key, value);
  else if (Array.isArray(value)) for (const item of value) visit(key, item, visitor);
  else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) visit(snakeCase(name), member, visitor);
  }
}

function snakeCase(name: string): string {
  return name.length > 64 ? '' : name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}

function isPath(key: string, text: string): boolean {
  return text.length <= PATH_CHARS_MAX && (PATH_KEY.test(key) || PATH_START.test(text) || TRAVERSAL.test(text));
}

/** The paths and hosts that arguments name: in members of such names, and in texts that look like them. The depth is bounded at the edge. */
export function placesIn(args: Readonly<Record<string, unknown>>): Places {
  const paths: string[] = [];
  const hosts: string[] = [];
  let hasUnsafePath = false;
  visit('', args, (key, text) => {
    const url = text.replace(SKIPPED, '').trimEnd();
    if (URL_START.test(url) || WITHOUT_SCHEME.test(url) || HOST_KEY.test(key)) {
      const host = hostOf(url);
      if (host !== null) hosts.push(host);
    }
    if (!isPath(key, text)) return;
    const path = normalPath(text);
    if (path === null) hasUnsafePath = true;
    else paths.push(path);
  });
  return { paths, hasUnsafePath, hosts };
}
