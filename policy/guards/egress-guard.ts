import { isIP } from 'node:net';
import { hostsIn, type NamedHost } from '../places/hosts.js';
import { snakeCase, visitTexts } from '../places/members.js';
import type { Find, GuardedContent } from './guarded-content.js';

/** Hosts that content may name. */
export interface EgressRules {
  /** Globs of host names, normalised by `hostGlob`: `example.com`, `*.example.com`; none: every public host. */
  allowedHosts: readonly string[];
  /** Globs of host names that are found even where `allowedHosts` has them. */
  deniedHosts: readonly string[];
  /** Whether the platform itself may reach an address; decides about literal addresses unless `allowedHosts` has them. */
  allowsAddress(address: string): boolean;
}

/** Schemes that read files, or speak to servers in ways that no tool needs an agent for. */
const FORBIDDEN_SCHEMES = new Set(['file', 'gopher', 'dict', 'jar', 'netdoc', 'php', 'expect', 'phar', 'ldap', 'tftp']);
/** Names of the machine itself, of the network around it, and of the metadata services of clouds. */
const PRIVATE_NAME =
  /(?:^|\.)(?:localhost|local|internal|intranet|lan|home\.arpa|localdomain)$|^metadata(?:\.|$)|^kubernetes(?:\.|$)/;
/** Finds addresses that content must not lead to: hosts that are not allowed, private addresses in any notation, schemes of local files. */
export function findHosts(content: Pick<GuardedContent, 'arguments' | 'texts'>, rules: EgressRules): Find[] {
  const found: Find[] = [];
  const look = (path: string, key: string, text: string): void => {
    for (const named of hostsIn(key, text)) {
      const problem = problemOf(named, rules);
      if (problem) found.push({ ...problem, path });
    }
  };
  if (content.arguments) visitTexts('arguments', '', content.arguments, look);
  else for (const { path, text } of content.texts) look(path, keyOf(path), text);
  return found;
}

/** The name of the member at a place: `parts[0].data.url` ends in `url`. */
function keyOf(path: string): string {
  return snakeCase(path.slice(path.lastIndexOf('.') + 1).replace(/\[\d+\]/g, ''));
}

function problemOf({ scheme, host }: NamedHost, rules: EgressRules): Omit<Find, 'path'> | undefined {
  if (scheme.split('+').some((part) => FORBIDDEN_SCHEMES.has(part)))
    return { rule: 'scheme', reason: `URLs of the scheme ${scheme} are not allowed.` };
  if (host === null) return { rule: 'malformed', reason: 'The URL has no host that can be read.' };
  return hostProblem(host, rules);
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
