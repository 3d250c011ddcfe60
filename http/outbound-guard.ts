import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';
import type { Logger } from '../runtime/logger.js';
import { OutboundError } from './outbound-error.js';

/** Resolves a host name to all its addresses. Called once for each new connection. */
export type ResolveHost = (hostname: string) => Promise<LookupAddress[]>;

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** The public part of IPv6. ipaddr.js calls some addresses outside it unicast, `::7f00:1` among them. */
const PUBLIC_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** A CIDR range. One inside `::ffff:0:0/96` becomes the IPv4 range that it maps, as addresses do. */
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

/** Decides which addresses outbound requests may reach: public unicast addresses and the allowed ranges. */
export class AddressGuard {
  readonly #allowedRanges: Range[];

  /** @throws TypeError when `allowCidrs` has something else than CIDR ranges */
  constructor(
    allowCidrs: readonly string[],
    private readonly log?: Pick<Logger, 'warn'>,
  ) {
    this.#allowedRanges = allowCidrs.map(parseRange);
  }

  /** Whether an address may be reached. IPv4-mapped IPv6 counts as IPv4; text that is not an address is refused. */
  allows(text: string): boolean {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    const allowed = this.#allowedRanges.some(
      ([base, bits]) => base.kind() === address.kind() && address.match(base, bits),
    );
    return allowed || isPublic(address);
  }

  /** @throws OutboundError FORBIDDEN_ADDRESS unless there is an address and all of them may be reached */
  check(host: string, addresses: readonly string[]): void {
    const address = addresses.length === 0 ? '' : addresses.find((one) => !this.allows(one));
    if (address === undefined) return;
    this.log?.warn({ host, address }, 'outbound address refused');
    throw new OutboundError('FORBIDDEN_ADDRESS');
  }

  /**
   * Parses the URL of a request, which turns `2130706433` and `0x7f.1` into `127.0.0.1`.
   * @throws OutboundError BAD_URL unless it is http(s) without credentials, FORBIDDEN_ADDRESS for a literal address that may not be reached
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

/** The name resolution of sockets: they connect to the very addresses that are checked here. */
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
 * An undici connector that opens only connections that the guard allows. `connect.lookup` alone does not suffice, since Node skips it for
 * literal addresses. The peer is checked again when the socket is open, before HTTP is sent.
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
        // The peer has reset the connection. Without an error undici would open others for as long as the peer does that.
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
