import ipaddr from 'ipaddr.js';

/**
 * What an address counts as: an IPv6 address as its /64, which one host has all of; an IPv4 address, also one mapped into IPv6,
 * as itself. Text that is no address stays as it is.
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
