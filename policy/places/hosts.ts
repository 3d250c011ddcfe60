import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { commandWords } from './commands.js';
import { isCommandKey } from './members.js';
import { decodeOnce, visibleText } from './normalise.js';
import { isPathKey } from './paths.js';
import { AUTHORITY_CHARS_MAX, type Url, urlsIn, wholeUrl } from './urls.js';

/** Members whose value is a host, or several with commas. */
const HOST_KEY = /(?:^|[_.-])(?:host|host_?name|domain|domain_name|server|endpoint|proxy|ip|ip_?address|origin)s?$/;
/** Members whose value is a URL, with or without its scheme. */
const URL_KEY = /(?:^|[_.-])(?:url|uri|webhook|callback|website|homepage)s?$/;
/** Members whose value may be an address alone. */
const ADDRESS_KEY =
  /(?:^|[_.-])(?:addr|address|target|remote|peer|upstream|gateway|dest|destination|href|link|src)(?:es|s)?$/;
/** Schemes without a host. */
const WITHOUT_HOST = new Set(['data', 'mailto', 'urn', 'tel', 'about', 'blob', 'cid', 'tag', 'did', 'doi']);
const SPECIAL_SCHEME = /^(?:https?|wss?|ftp)$/;
/** A name that is in its normal form already: most are. */
const NORMAL = /^((?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*)(?::\d{1,4})?$/;

/** `user@host:port`, up to the path. */
const BARE = /^(?:[^\s/?#\\]*@)?(\[[^\]\s]*\]|[^\s:/?#\\@[\]]+)(?::(\d{0,5}))?(?=[/?#\\]|$)/u;
/** An address in four numbers, or the machine's own name. */
const ADDRESS = /^(?:\d{1,4}(?:\.\d{1,4}){3}|\[[0-9a-f:.]+\]|localhost\.?)$/i;
/** A range of addresses, not one of them: `10.0.0.0/8`. */
const RANGE = /^[^/]*\/\d{1,3}$/;
const REMOTE_CHARS_MAX = 512;
/** `host:path` of `scp` and `git`. */
const REMOTE = /^(?:[^\s/@:]*@)?([^\s/@:]+\.[^\s/@:]+|\[[^\]\s]*\]):/;

/** What an address in a text leads to. */
export interface NamedHost {
  /** In lower case; '' where it has none. */
  scheme: string;
  /** As a client reaches it: numbers as addresses, names in lower case and punycode. Null: nobody can tell. */
  host: string | null;
}

/** The hosts that a member names. In linear time. @param key in snake case; '' for a text without a name */
export function* hostsIn(key: string, text: string): Generator<NamedHost> {
  const seen = new Set<string>();
  for (const url of addressesIn(key, visibleText(text))) {
    const named = `${url.scheme} ${url.authority}`;
    if (seen.has(named)) continue;
    seen.add(named);
    yield* hostsOf(url);
  }
}

function* addressesIn(key: string, visible: string): Generator<Url> {
  if (isCommandKey(key)) {
    yield* urlsIn(visible);
    for (const { text, may } of commandWords(visible)) {
      yield* wholeUrl(text);
      const remote = may === 'remote' ? REMOTE.exec(text.slice(0, REMOTE_CHARS_MAX))?.[1] : undefined;
      if (remote) yield { scheme: '', authority: remote };
      else yield* bareHost(text, may === 'host' ? isHost : isAddressOfCommand);
    }
    return;
  }
  // As browsers read a URL: without leading space, and without tabs and line ends anywhere.
  const whole = visible.trim().replace(/[\t\r\n]/g, '');
  const isNamed = HOST_KEY.test(key) || URL_KEY.test(key);
  const isWhole = isNamed || !/\s/.test(whole);
  if (isWhole) yield* wholeUrl(whole);
  yield* urlsIn(visible);
  if (!isWhole) return;
  if (HOST_KEY.test(key)) for (const one of whole.split(/[,;]/)) yield* bareHost(one.trim(), isHostOrNumber);
  else if (URL_KEY.test(key)) yield* bareHost(whole, isHost);
  else if (!isPathKey(key)) yield* bareHost(whole, ADDRESS_KEY.test(key) ? isAddress : isAddressInUse);
}

type Accepts = (host: string, authority: string, text: string) => boolean;

/** The authority of a text without a scheme, if its host is accepted as one. */
function* bareHost(given: string, accepts: Accepts): Generator<Url> {
  const scheme = /^[a-z][a-z0-9+.-]*(?=:)/i.exec(given.slice(0, 64))?.[0].toLowerCase();
  if (scheme && WITHOUT_HOST.has(scheme)) return;
  const text = isIP(given) === 6 && given !== '::' ? `[${given}]` : given;
  const [authority, host] = BARE.exec(text.slice(0, AUTHORITY_CHARS_MAX + 2)) ?? [];
  if (authority && host && accepts(host, authority, text)) yield { scheme: '', authority };
}

/** Whether a text can only be a host where one may stand: it has a dot inside, is an address, or the machine's own name. */
const isHost: Accepts = (host) =>
  ADDRESS.test(host) || /[^.。][.。][^.。]/.test(host) || /^(?:0x[0-9a-f]{1,8}|\d{8,12})$/i.test(host);
const isHostOrNumber: Accepts = (host, ...rest) => isHost(host, ...rest) || /^(?:0x)?[0-9a-f]*\d$/i.test(host);
const isAddress: Accepts = (host, _authority, text) => ADDRESS.test(host) && !RANGE.test(text);
const isAddressOfCommand: Accepts = (host, authority, text) =>
  /^localhost/i.test(host) ? isAddressInUse(host, authority, text) : isAddress(host, authority, text);
/** An address with a port or a path behind it: alone it may be a version, or a word. */
const isAddressInUse: Accepts = (host, authority, text) =>
  isAddress(host, authority, text) && text.length > host.length;

/** The hosts of a URL: several where its scheme takes a list. */
function* hostsOf({ scheme, authority }: Url): Generator<NamedHost> {
  if (WITHOUT_HOST.has(scheme)) return;
  if (authority.length > AUTHORITY_CHARS_MAX) {
    yield { scheme, host: null };
    return;
  }
  for (const one of authority.slice(authority.lastIndexOf('@') + 1).split(',')) {
    const host = readHost(one, scheme);
    if (host !== '') yield { scheme, host };
  }
}

/** For a scheme that is not of the web, URL parsers leave the host as it is. Parsed as that of http, numbers become addresses too. */
function readHost(given: string, scheme: string): string | null {
  const normal = NORMAL.exec(given)?.[1];
  if (normal && !normal.includes('xn--')) return normal;
  const special = SPECIAL_SCHEME.test(scheme) ? scheme : 'http';
  if (given === '' || given.startsWith(':')) return '';
  for (const host of [given, decodeOnce(given)])
    if (URL.canParse(`${special}://${host}`))
      return new URL(`${special}://${host}`).hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
  return null;
}

/** A glob of hosts in the form that `NamedHost.host` has; one with a wildcard inside an international label in that of `unicodeHost`. */
export function hostGlob(given: string): string {
  const glob = visibleText(given).toLowerCase().replaceAll('。', '.').replace(/\.$/, '');
  const labels = glob.split('.');
  const isMixed = labels.some((label) => /[*?]/.test(label) && /[^ -~]/.test(label));
  return isMixed
    ? glob
    : labels.map((label) => (/[^ -~]/.test(label) ? domainToASCII(label) || label : label)).join('.');
}

/** An international host name as people write it; undefined for any other. */
export function unicodeHost(host: string): string | undefined {
  return host.includes('xn--') ? domainToUnicode(host) : undefined;
}
