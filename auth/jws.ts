import { type KeyObject, sign } from 'node:crypto';

function segment(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/**
 * A signed JWT in compact form (RFC 7515, EdDSA of RFC 8037). Every dispatch to a hosted agent carries one of its own, and jose's
 * Web Crypto path measured 250 µs of CPU where this takes 50. Everything is verified by jose.
 */
export function signJwt(header: { kid: string; typ: string }, payload: object, privateKey: KeyObject): string {
  const input = `${segment({ alg: 'EdDSA', ...header })}.${segment(payload)}`;
  return `${input}.${sign(null, Buffer.from(input), privateKey).toString('base64url')}`;
}
