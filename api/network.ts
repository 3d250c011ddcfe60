import ipaddr from 'ipaddr.js';

/**
 * The network by which an address is limited: the /64 of an IPv6 address, since one host owns all of it; an IPv4 address itself, also
 * where it is mapped into IPv6. Text that is not an address stays as it is.
 */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
