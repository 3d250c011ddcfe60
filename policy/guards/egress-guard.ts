import { isIP } from 'node:net';
import type { Find, GuardedContent } from './guarded-content.js';
import { decodeOnce, visibleText } from './normalise.js';
import { visit } from './path-guard.js';

/** Hosts that content may name. */
export interface EgressRules {
  /** Globs of host names, in lower case: `example.com`, `*.example.com`; none: every public host. */
  allowedHosts: readonly string[];
  /** Globs of host names that are found even where `allowedHosts` has them. */
  deniedHosts: readonly string[];
  /** Whether the platform itself may reach an address; decides about literal addresses unless `allowedHosts` has them. */
  allowsAddress(address: string): boolean;
}

/** Members whose value is a host without a scheme. */
const HOST_KEY = /(?:^|[_.-])(?:host|hostname|domain|server|endpoint|proxy|ip|ip_address|origin)s?$/;
/** Schemes that read files, or speak to servers in ways that no tool needs an agent for. */
const FORBIDDEN_SCHEMES = new Set(['file', 'gopher', 'dict', 'jar', 'netdoc', 'php', 'expect', 'phar', 'ldap', 'tftp']);
/** Schemes without a host. */
const WITHOUT_HOST = new Set(['data', 'mailto', 'urn', 'tel', 'about', 'blob', 'cid', 'tag', 'did', 'doi']);
/** Names of the machine itself, of the network around it, and of the metadata services of clouds. */
const PRIVATE_NAME =
  /(?:^|\.)(?:localhost|local|internal|intranet|lan|home\.arpa|localdomain)$|^metadata(?:\.|$)|^kubernetes(?:\.|$)/;
const SCHEME_CHARS = /[A-Za-z0-9+.-]/;
const SCHEME_CHARS_MAX = 32;
const URL_CHARS_MAX = 2_048;
/** Characters of the longest URL that is looked at. */
export const URL_SPAN = SCHEME_CHARS_MAX + URL_CHARS_MAX;
/**
 * A URL without a scheme in a text, up to its path: where markup, a quotation or a sentence holds one, with a host that is an address (also
 * as one number) or has a dot. Elsewhere two slashes begin comments, divide, or separate the segments of paths.
 */
const WITHOUT_SCHEME =
  /(?<=^|[\s"'`(=[<>,])[\\/]{2,8}(?:[^\s"'`<>\\/?#@]{1,256}@)?(?:(?:[\p{L}\p{N}_-]{1,63}[.。]){1,9}[\p{L}\p{N}-]{1,63}[.。]?|localhost|0x[0-9a-f]{1,8}|\d{8,12}|\[[0-9a-f:.]{2,45}\])(?=[\\/:?#"'`)\]>\s,;!]|$)/giu;
/** What ends a URL in a text. */
const URL_END = /[\s"'<>`|{}\\^]/;

/** Finds addresses that content must not lead to: hosts that are not allowed, private addresses in any notation, schemes of local files. */
export function findHosts(content: Pick<GuardedContent, 'arguments' | 'texts'>, rules: EgressRules): Find[] {
  const found: Find[] = [];
  const note = (path: string, urls: Iterable<string>): void => {
    for (const url of urls) {
      const problem = problemOf(url, rules);
      if (problem) found.push({ ...problem, path });
    }
  };
  if (content.arguments) visit('arguments', '', content.arguments, (path, key, text) => note(path, urlsOf(key, text)));
  else for (const { path, text } of content.texts) note(path, urlsIn(text));
  return found;
}

/** The URLs in an argument; the host, as a URL, in a member that holds a host. */
function urlsOf(key: string, text: string): Iterable<string> {
  if (text.length > URL_CHARS_MAX) return urlsIn(text);
  // As browsers read a URL: without leading space, and without tabs and line ends anywhere.
  const whole = visibleText(text)
    .trim()
    .replace(/[\t\r\n]/g, '');
  if (/^[\\/]{2,}[^\\/\s]/.test(whole) && !/\s/.test(whole)) return [`http://${whole.replace(/^[\\/]+/, '')}`];
  if (/^(?:https?|wss?|ftp|file|gopher|jar|php|data):/i.test(whole)) return [whole, ...urlsIn(text)];
  if (HOST_KEY.test(key) && /^[\w.:[\]%-]+$/.test(whole) && isHost(whole)) return [`http://${whole}`];
  return urlsIn(text);
}

/** Whether a text can only be a host: it has a dot, is an address, a number, or the machine's own name. */
function isHost(text: string): boolean {
  return /[.:]/.test(text) || /^(?:0x)?[0-9a-f]*\d$/i.test(text) || /^localhost$/i.test(text);
}

/** The URLs in a text: those with a scheme, and those that leave it to whoever opens them. In linear time. */
function* urlsIn(text: string): Generator<string> {
  const visible = visibleText(text);
  if (!/[\\/]/.test(visible)) return;
  yield* urlsWithScheme(visible);
  for (const [url] of visible.matchAll(WITHOUT_SCHEME)) yield `http:${url}`;
}

/** The URLs in a visible text that have a scheme, each from there to what ends it. */
function* urlsWithScheme(visible: string): Generator<string> {
  for (let colon = visible.indexOf(':'); colon !== -1; colon = visible.indexOf(':', colon + 1)) {
    const next = visible[colon + 1];
    if (next !== '/' && next !== '\\') continue;
    let start = colon;
    while (start > 0 && colon - start < SCHEME_CHARS_MAX && SCHEME_CHARS.test(visible[start - 1] as string)) start--;
    if (start === colon) continue;
    let end = colon + 1;
    while (visible[end] === '/' || visible[end] === '\\') end++;
    const authority = end;
    while (end < visible.length && end - authority < URL_CHARS_MAX && !URL_END.test(visible[end] as string)) end++;
    // A path of a drive (`C:\…`), a ratio (`1:/2`): nothing that has a host.
    if (colon - start > 1 && end > authority) yield visible.slice(start, end);
    colon = end - 1;
  }
}

function problemOf(text: string, rules: EgressRules): Omit<Find, 'path'> | undefined {
  const scheme = text
    .slice(0, text.indexOf(':'))
    .toLowerCase()
    .replace(/^[^a-z]+/, '');
  const parts = scheme.split('+');
  if (parts.some((part) => FORBIDDEN_SCHEMES.has(part)))
    return { rule: 'scheme', reason: `URLs of the scheme ${scheme} are not allowed.` };
  if (WITHOUT_HOST.has(scheme)) return undefined;
  const host = hostOf(text, scheme);
  if (host === undefined) return { rule: 'malformed', reason: 'The URL has no host that can be read.' };
  return host === '' ? undefined : hostProblem(host, rules);
}

/** The host as a client reaches it: numbers as addresses, names in lower case and punycode. Undefined for a URL that cannot be parsed. */
function hostOf(text: string, scheme: string): string | undefined {
  const rest = text.slice(text.indexOf(':') + 1).replace(/^[\\/]*/, '');
  if (rest === '') return '';
  // Of other schemes the host is opaque: parsed as that of http, numbers become addresses too.
  const isSpecial = /^(?:https?|wss?|ftp)$/.test(scheme);
  const url = `${isSpecial ? scheme : 'http'}://${rest}`;
  const parsed = URL.canParse(url) ? url : `http://${decodeOnce(rest.split(/[/?#]/, 1)[0] ?? '').split(',')[0]}`;
  if (!URL.canParse(parsed)) return undefined;
  return new URL(parsed).hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
}

function hostProblem(host: string, rules: EgressRules): Omit<Find, 'path'> | undefined {
  if (matchesHost(host, rules.deniedHosts)) return { rule: 'denied_host', reason: 'The host is denied.' };
  if (matchesHost(host, rules.allowedHosts)) return undefined;
  if (isPrivate(host, rules)) return { rule: 'private_address', reason: 'The address is not public.' };
  if (rules.allowedHosts.length === 0) return undefined;
  return { rule: 'unknown_host', reason: 'The host is not among those that are allowed.' };
}

function isPrivate(host: string, { allowsAddress }: EgressRules): boolean {
  if (isIP(host) !== 0) return !allowsAddress(host);
  if (/(?:^|\.)localhost$/.test(host)) return !allowsAddress('127.0.0.1');
  return PRIVATE_NAME.test(host);
}

/** `*.example.com` matches names below example.com, `*` all of them. */
function matchesHost(host: string, globs: readonly string[]): boolean {
  return globs.some((glob) => {
    if (glob === '*') return true;
    return glob.startsWith('*.') ? host.endsWith(glob.slice(1)) && host.length > glob.length - 1 : host === glob;
  });
}
