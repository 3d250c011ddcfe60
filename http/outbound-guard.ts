import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';
import { OutboundError } from './outbound-error.js';

/** Resolves a host name to all of its addresses, asked once for each new connection. */
export type ResolveHost = (hostname: string) => Promise<LookupAddress[]>;

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** All of IPv6 that is assigned for public use. Outside it ipaddr.js calls some addresses unicast, `::7f00:1` among them. */
const PUBLIC_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** A CIDR range; one inside `::ffff:0:0/96` becomes the IPv4 range it maps, as addresses do. */
function parseRange(cidr: string): Range {
  if (!ipaddr.isValidCIDR(cidr)) throw new TypeError(`not a CIDR range: ${JSON.stringify(cidr)}`);
  const [base, bits] = ipaddr.parseCIDR(cidr);
  const mapped = base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= 96;
  return mapped ? [base.toIPv4Address(), bits - 96] : [base, bits];
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const assigned = address.kind() === 'ipv4' || address.match(PUBLIC_IPV6);
  return assigned && address.range() === 'unicast';
}

/** Decides which addresses outbound requests may reach: public unicast ones, and those in the opened ranges. */
export class AddressGuard {
  readonly #opened: Range[];
  readonly #onRefused: (host: string, address: string) => void;

  /**
   * @param allowCidrs opened ranges; throws a TypeError for anything that is not a CIDR range
   * @param onRefused told of each refusal
   */
  constructor(allowCidrs: readonly string[], onRefused: (host: string, address: string) => void) {
    this.#opened = allowCidrs.map(parseRange);
    this.#onRefused = onRefused;
  }

  /** Whether an address may be reached. IPv4-mapped IPv6 counts as IPv4; text that is no address is refused. */
  allows(text: string): boolean {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    const opened = this.#opened.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
    return opened || isPublic(address);
  }

  /** Throws FORBIDDEN_ADDRESS unless every one of `addresses`, and at least one, may be reached. */
  check(host: string, addresses: readonly string[]): void {
    const refused = addresses.length === 0 ? '' : addresses.find((address) => !this.allows(address));
    if (refused === undefined) return;
    this.#onRefused(host, refused);
    throw new OutboundError('FORBIDDEN_ADDRESS');
  }

  /**
   * Parses the URL of a request. Throws BAD_URL unless it is http(s) without credentials, FORBIDDEN_ADDRESS for a literal
   * address that may not be reached (the parser has by then turned `2130706433` or `0x7f.1` into `127.0.0.1`).
   */
  checkUrl(text: string): URL {
    if (!URL.canParse(text)) throw new OutboundError('BAD_URL');
    const url = new URL(text);
    const http = url.protocol === 'http:' || url.protocol === 'https:';
    if (!http || url.username !== '' || url.password !== '') throw new OutboundError('BAD_URL');
    const literal = url.hostname.replace(/^\[|\]$/g, '');
    if (isIP(literal) !== 0) this.check(literal, [literal]);
    return url;
  }
}

/** The socket's name resolution: what is checked here is what the socket connects to, there is no second look. */
function guardedLookup(guard: AddressGuard, resolveHost: ResolveHost): LookupFunction {
  const resolveChecked = async (hostname: string): Promise<LookupAddress[]> => {
    const found = await resolveHost(hostname);
    const addresses = found.map(({ address }) => address);
    guard.check(hostname, addresses);
    return found;
  };
  return (hostname, options, callback) => {
    resolveChecked(hostname).then(
      (found) => {
        if (options.all) callback(null, found);
        else callback(null, found[0]?.address ?? '', found[0]?.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

/**
 * An undici connector that opens no connection the guard refuses. `connect.lookup` alone would not do: Node skips it for
 * literal addresses. The peer is checked once more when the socket is open, before HTTP is spoken on it.
 */
export function guardedConnector(
  guard: AddressGuard,
  options: { resolveHost: ResolveHost; connectTimeoutMs: number },
): buildConnector.connector {
  const lookup = guardedLookup(guard, options.resolveHost);
  const connect = buildConnector({ lookup, timeout: options.connectTimeoutMs } as buildConnector.BuildOptions);
  return (target, callback) => {
    try {
      if (isIP(target.hostname) !== 0) guard.check(target.hostname, [target.hostname]);
    } catch (error) {
      queueMicrotask(() => callback(error as Error, null));
      return;
    }
    connect(target, (...[error, socket]) => {
      if (error) return callback(error, null);
      try {
        // The peer reset it already: undici would open another one, and again, for as long as the peer does that.
        if (socket.remoteAddress === undefined) throw new OutboundError('CONNECT_FAILED');
        guard.check(target.hostname, [socket.remoteAddress]);
      } catch (refusal) {
        socket.destroy();
        return callback(refusal as Error, null);
      }
      callback(null, socket);
    });
  };
}
