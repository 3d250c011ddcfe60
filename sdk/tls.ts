import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';

const REMEMBERED_MAX = 16;
const contexts = new Map<string, SecureContext>();

/**
 * TLS that trusts an authority beside the usual ones. Made once for each authority: reading all root certificates takes some 20 ms and a
 * megabyte, and agents that lost their node come back by the hundred.
 * @param ca in PEM
 * @throws Error when `ca` is not PEM
 */
export function trusting(ca: string): SecureContext {
  const known = contexts.get(ca);
  if (known) return known;
  if (contexts.size >= REMEMBERED_MAX) contexts.clear();
  const context = createSecureContext({ ca: [...rootCertificates, ca] });
  contexts.set(ca, context);
  return context;
}
