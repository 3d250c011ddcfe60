import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const VERSION = 1;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + IV_BYTES + TAG_BYTES;

export type Secrets = ReturnType<typeof createSecrets>;

/** The check value of a key is a MAC of this text: it tells keys apart without giving them away. */
const CHECK = { text: 'the key of this platform', purpose: 'secret_key_check' };

/** One secret key. */
class SecretKey {
  readonly #bytes: Buffer;
  readonly #subkeys = new Map<string, Buffer>();
  /** A MAC by which the database knows the key. */
  readonly check: string;

  /** @throws Error unless it is 32 bytes in base64 */
  constructor(keyBase64: string) {
    this.#bytes = Buffer.from(keyBase64, 'base64');
    if (this.#bytes.length !== 32) throw new Error('FLEET_SECRET_KEY must be 32 bytes in base64');
    this.check = this.mac(CHECK.text, CHECK.purpose).toString('base64');
  }

  subkey(use: 'encrypt' | 'mac', purpose: string): Buffer {
    const info = `${use}:${purpose}`;
    const derived = this.#subkeys.get(info) ?? Buffer.from(hkdfSync('sha256', this.#bytes, 'agent-fleet', info, 32));
    this.#subkeys.set(info, derived);
    return derived;
  }

  mac(text: string, purpose: string): Buffer {
    return createHmac('sha256', this.subkey('mac', purpose)).update(text).digest();
  }
}

/** An encrypted value that cannot be read: it was altered, or sealed with a key that this process does not have. */
export class UnreadableValue extends Error {
  constructor() {
    super('an encrypted value cannot be read: it was altered, or sealed with another key');
  }
}

/** A sealed value in plain, and whether the key in use has sealed it; null where none of the keys has. */
type Opened = { plain: Buffer; isCurrent: boolean } | null;

/**
 * Encryption and MACs with keys derived from `FLEET_SECRET_KEY`. A purpose is a constant name; each purpose has keys of its own. One key is
 * in use; during a rotation the others are accepted for reading.
 * @param keyBase64 32 bytes in base64: the key in use, until `activate` says otherwise
 * @param others further keys: the previous one, or the next
 * @throws Error for anything else
 */
export function createSecrets(keyBase64: string, others: readonly string[] = []) {
  let keys: [SecretKey, ...SecretKey[]] = [new SecretKey(keyBase64), ...others.map((key) => new SecretKey(key))];
  const open = (sealed: Buffer, purpose: string): Opened => {
    for (const [index, key] of keys.entries()) {
      const plain = unseal(key.subkey('encrypt', purpose), sealed);
      if (plain) return { plain, isCurrent: index === 0 };
    }
    return null;
  };
  const encrypt = (plain: Buffer | string, purpose: string) => seal(keys[0].subkey('encrypt', purpose), plain);
  const opened = (sealed: Buffer, purpose: string) => {
    const found = open(sealed, purpose);
    if (!found) throw new UnreadableValue();
    return found;
  };
  return {
    /** AES-256-GCM. What is stored is sealed in a transaction that holds the key in use (`holdSecretKey`). */
    encrypt,
    /** @throws UnreadableValue for altered bytes, and for those of another key or purpose */
    decrypt: (sealed: Buffer, purpose: string): Buffer => opened(sealed, purpose).plain,
    /** Seals a value anew with the key in use, unless that has sealed it already, or none of the keys opens it. */
    sealAnew: (sealed: Buffer, purpose: string): Buffer | 'in use' | 'unreadable' => {
      const found = open(sealed, purpose);
      if (!found) return 'unreadable';
      return found.isCurrent ? 'in use' : encrypt(found.plain, purpose);
    },
    /** HMAC-SHA256 with the key in use: 32 bytes. */
    mac: (text: string, purpose: string): Buffer => keys[0].mac(text, purpose),
    /** `mac` with every key, the one in use first: to verify what may be from before a rotation. */
    macs: (text: string, purpose: string): Buffer[] => keys.map((key) => key.mac(text, purpose)),
    /** Identifies the key in use, and gives nothing of it away. */
    check: (): string => keys[0].check,
    /** Whether one of the keys has this check value. */
    has: (check: string): boolean => keys.some((key) => key.check === check),
    /** Uses the key with this check value from now on. @returns false where it is none of these keys */
    activate: (check: string): boolean => {
      const [next] = keys.filter((key) => key.check === check);
      if (!next) return false;
      keys = [next, ...keys.filter((key) => key !== next)];
      return true;
    },
    /** Accepts further keys for reading. */
    add: (added: readonly string[]): void => {
      const fresh = added.map((key) => new SecretKey(key));
      keys.push(...fresh.filter(({ check }) => !keys.some((key) => key.check === check)));
    },
  };
}

/** Layout: version (1 byte), initialisation vector (12), tag (16), cipher text. */
function seal(key: Buffer, plain: Buffer | string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const text = Buffer.concat([cipher.update(Buffer.from(plain)), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), iv, cipher.getAuthTag(), text]);
}

/** @returns null for altered bytes, for those of another key, and for what is none of this platform's */
function unseal(key: Buffer, sealed: Buffer): Buffer | null {
  if (sealed.length < HEADER_BYTES || sealed[0] !== VERSION) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(1 + IV_BYTES, HEADER_BYTES));
  const text = decipher.update(sealed.subarray(HEADER_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]);
  } catch {
    return null; // the tag does not fit
  }
}
