import { timingSafeEqual } from 'node:crypto';
import type { z } from 'zod';
import { PlatformError } from '../../runtime/errors.js';
import type { Secrets } from '../../runtime/secrets.js';

const MAC_BYTES = 16;

/** Which list a cursor belongs to. */
export interface CursorOf<Position> {
  /** Keeps cursors of different kinds apart. */
  purpose: string;
  /** What makes the list another one: the tenant, the caller and the filters. */
  list: unknown[];
  schema: z.ZodType<Position>;
  /** The error for a cursor that was not made for this list; BAD_REQUEST by default. */
  refusal?: () => PlatformError;
}

const notOfList = () =>
  new PlatformError('BAD_REQUEST', 'cursor: is not one of this list. Give the same filters, as the same caller.');

/**
 * The cursors of one list. A cursor names a position and carries a MAC over it and the list, so that it is good for the caller and the filters
 * that it was made for only, on every node.
 */
export function createCursors<Position>(
  secrets: Pick<Secrets, 'macs'>,
  { purpose, list, schema, refusal = notOfList }: CursorOf<Position>,
) {
  // The first is of the key in use; a cursor may be of before a rotation of the secret key.
  const macsOf = (position: string) =>
    secrets.macs(JSON.stringify([list, position]), purpose).map((mac) => mac.subarray(0, MAC_BYTES));
  return {
    make: (position: Position): string => {
      const text = JSON.stringify(position);
      return Buffer.concat([...macsOf(text).slice(0, 1), Buffer.from(text)]).toString('base64url');
    },
    /** @returns null without a cursor. @throws the refusal of one that was not made for this list */
    read: (cursor: string | undefined): Position | null => {
      if (cursor === undefined) return null;
      const bytes = Buffer.from(cursor, 'base64url');
      const text = bytes.subarray(MAC_BYTES).toString();
      const given = bytes.subarray(0, MAC_BYTES);
      if (bytes.length <= MAC_BYTES || !macsOf(text).some((mac) => timingSafeEqual(given, mac))) throw refusal();
      return schema.parse(JSON.parse(text));
    },
  };
}
