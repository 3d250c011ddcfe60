import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';

/** A certificate with its chain, and its key, in PEM. */
export interface Certificate {
  cert: string | Buffer;
  key: string | Buffer;
}

/** When a certificate ends, in milliseconds since 1970. */
export function certificateEndsAtMs({ cert }: Certificate): number {
  return Date.parse(new X509Certificate(cert).validTo);
}

/** @throws Error that says why a server cannot use it now */
function check(certificate: Certificate, nowMs: number): void {
  const parsed = new X509Certificate(certificate.cert);
  if (!parsed.checkPrivateKey(createPrivateKey(certificate.key.toString())))
    throw new Error('the key does not belong to the certificate');
  if (Date.parse(parsed.validTo) <= nowMs) throw new Error(`the certificate ended on ${parsed.validTo}`);
  if (Date.parse(parsed.validFrom) > nowMs) throw new Error(`the certificate is not valid before ${parsed.validFrom}`);
  createSecureContext({ cert: certificate.cert, key: certificate.key });
}

const isSame = (a: Certificate, b: Certificate): boolean =>
  a.cert.toString() === b.cert.toString() && a.key.toString() === b.key.toString();

/**
 * The loop that looks whether certificate and key were replaced, and then uses the new pair. If the new pair cannot be used, the old one stays
 * in use. The first such turn is silent, because the two files may be replaced one after the other; from the second in a row on, the loop
 * counts as failing.
 * @param options.read reads the pair as it is now
 * @param options.use gives the pair to new connections; existing ones stay
 */
export function createCertificateReload(options: {
  current: Certificate;
  read: () => Promise<Certificate>;
  use: (certificate: Certificate) => void;
  intervalMs: number;
  log: Pick<Logger, 'info' | 'warn'>;
}): Loop {
  const { read, use, intervalMs, log } = options;
  let { current } = options;
  let badTurns = 0;
  const work = async (): Promise<void> => {
    try {
      const found = await read();
      if (!isSame(found, current)) {
        check(found, Date.now());
        use(found);
        current = found;
        const ends_at = new Date(certificateEndsAtMs(found)).toISOString();
        log.info({ ends_at }, 'the certificate was replaced: new connections use it');
      }
      badTurns = 0;
    } catch (error) {
      badTurns += 1;
      if (badTurns === 1) return;
      const text = `certificate and key cannot be used, and those before stay in use: ${errorMessage(error)}`;
      throw new Error(text, { cause: error });
    }
  };
  return new Loop({ name: 'certificate', intervalMs, work, log });
}
