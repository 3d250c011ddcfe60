import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const VERSION = 1;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + IV_BYTES + TAG_BYTES;

export type Secrets = ReturnType<typeof createSecrets>;

/**
 * Encryption and MACs with keys derived from `FLEET_SECRET_KEY`. A purpose is a constant name; each purpose has keys of its own.
 * @param keyBase64 32 bytes in base64
 * @throws Error for anything else
 */
export function createSecrets(keyBase64: string) {
  const key = Buffer.from(keyBase64, 'base64');
  if (key.length !== 32) throw new Error('FLEET_SECRET_KEY must be 32 bytes in base64');
  const subkeys = new Map<string, Buffer>();
  const subkey = (use: 'encrypt' | 'mac', purpose: string): Buffer => {
    const info = `${use}:${purpose}`;
    const derived = subkeys.get(info) ?? Buffer.from(hkdfSync('sha256', key, 'agent-fleet', info, 32));
    subkeys.set(info, derived);
    return derived;
  };
  return {
    /** AES-256-GCM. */
    encrypt: (plain: Buffer | string, purpose: string) => seal(subkey('encrypt', purpose), plain),
    /** @throws Error for altered bytes, and for those of another key or purpose */
    decrypt: (sealed: Buffer, purpose: string) => unseal(subkey('encrypt', purpose), sealed),
    /** HMAC-SHA256: 32 bytes. */
    mac: (text: string, purpose: string): Buffer => createHmac('sha256', subkey('mac', purpose)).update(text).digest(),
  };
}

/** Layout: version (1 byte), initialisation vector (12), tag (16), cipher text. */
function seal(key: Buffer, plain: Buffer | string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const text = Buffer.concat([cipher.update(Buffer.from(plain)), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), iv, cipher.getAuthTag(), text]);
}

function unseal(key: Buffer, sealed: Buffer): Buffer {
  if (sealed.length < HEADER_BYTES || sealed[0] !== VERSION) throw new Error('not an encrypted value of this platform');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(1 + IV_BYTES, HEADER_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES)), decipher.final()]);
}
