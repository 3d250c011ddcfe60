import { X509Certificate } from 'node:crypto';

const EXAMPLE = 'for example http://127.0.0.1:8080';
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** @throws Error unless `url` can be the address of a platform's API */
export function requireApiUrl(url: string): void {
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: '' };
  if (protocol === 'http:' || protocol === 'https:') return;
  const isMesh = protocol === 'ws:' || protocol === 'wss:';
  const remedy = isMesh ? 'That is the address of a mesh; give the API’s' : 'Give one with http:// or https://';
  throw new Error(`${url} is not the address of an API. ${remedy} (\`url\` or FLEET_BASE_URL), ${EXAMPLE}.`);
}

/** @throws Error unless `pem` holds certificates, and nothing but such as can be read */
export function requireCertificates(pem: string): void {
  const blocks = pem.match(PEM_BLOCK) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
    if (blocks.length > 0) return;
  } catch (cause) {
    throw noCertificates(cause);
  }
  throw noCertificates();
}

function noCertificates(cause?: unknown): Error {
  const message = 'The certificate authority (`ca` or FLEET_CA_FILE) is not one or more certificates in PEM.';
  return new Error(message, { cause });
}
