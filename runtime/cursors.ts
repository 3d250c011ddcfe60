import { timingSafeEqual } from 'node:crypto';
import type { z } from 'zod';
import type { Secrets } from './secrets.js';

const MAC_BYTES = 16;

/** Which list a cursor belongs to. */
export interface CursorOf<Position> {
  /** Keeps cursors of different kinds apart. */
  purpose: string;
  /** What makes the list another one: the tenant, the caller and the filters. */
  list: unknown[];
  schema: z.ZodType<Position>;
}

/**
 * The cursors of one list. A cursor names a position and carries a MAC over it and the list, so that it is good for the caller and the filters
 * that it was made for only, on every node.
 */
export function createCursors<Position>(secrets: Pick<Secrets, 'macs'>, { purpose, list, schema }: CursorOf<Position>) {
  // The first is of the key in use; a cursor may be of before a rotation of the secret key.
  const macsOf = (position: string) =>
    secrets.macs(JSON.stringify([list, position]), purpose).map((mac) => mac.subarray(0, MAC_BYTES));
  return {
    make: (position: Position): string => {
      const text = JSON.stringify(position);
      return Buffer.concat([...macsOf(text).slice(0, 1), Buffer.from(text)]).toString('base64url');
    },
    /** @returns null for what was not made for this list */
    read: (cursor: string): Position | null => {
      const bytes = Buffer.from(cursor, 'base64url');
      const text = bytes.subarray(MAC_BYTES).toString();
      const given = bytes.subarray(0, MAC_BYTES);
      if (bytes.length <= MAC_BYTES || !macsOf(text).some((mac) => timingSafeEqual(given, mac))) return null;
      return schema.parse(JSON.parse(text));
    },
  };
}
