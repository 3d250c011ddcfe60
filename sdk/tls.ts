import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';

const CACHED_MAX = 16;
const contexts = new Map<string, SecureContext>();

/**
 * A TLS context that trusts `ca` in addition to the default authorities. Cached by authority: parsing all root certificates takes about
 * 20 ms and 1 MB, and hundreds of agents may reconnect at once after a node failure.
 * @param ca in PEM
 * @throws Error when `ca` is not PEM
 */
export function secureContextFor(ca: string): SecureContext {
  const cached = contexts.get(ca);
  if (cached) return cached;
  if (contexts.size >= CACHED_MAX) contexts.clear();
  const context = createSecureContext({ ca: [...rootCertificates, ca] });
  contexts.set(ca, context);
  return context;
}
