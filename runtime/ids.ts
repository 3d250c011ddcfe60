import { randomBytes } from 'node:crypto';

/** Prefixes of the identifiers this platform makes (decisions.md, Conventions). */
export type IdPrefix = 'ses' | 'msg' | 'evt' | 'dsp' | 'cred' | 'ten' | 'req' | 'mesh' | 'con' | 'apv';

/** A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits, so ids sort by creation time. */
export function uuidv7(nowMs: number = Date.now()): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** A new identifier: the prefix, an underscore and a UUIDv7. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7()}`;
}

/** The UUID inside a prefixed identifier: `dsp_…` → the id of its dispatch frame. */
export function uuidOf(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}
