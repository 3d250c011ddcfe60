import { timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { PlatformError } from '../../runtime/errors.js';
import type { Secrets } from '../../runtime/secrets.js';
import type { TaskPosition } from './task-walk.js';

const PURPOSE = 'task-page-token';
const MAC_BYTES = 16;
const Id = z.string().max(200);
/** The last task (time of its change, id; null before the first one), and the id from which messages are read. */
const Position = z.tuple([z.int().min(0).nullable(), Id, Id.nullable()]);

/**
 * The page tokens of one list of tasks. A token names a position and carries a MAC over it and the list, so that it is good for the tenant
 * and the filters that it was made for only, on every node.
 * @param list what makes the list another one: the tenant, the reader's type and the filters
 */
export function createPageTokens(secrets: Pick<Secrets, 'macs'>, list: unknown[]) {
  // The first is of the key in use; a token may be of before a rotation of the secret key.
  const macsOf = (position: string) =>
    secrets.macs(JSON.stringify([list, position]), PURPOSE).map((mac) => mac.subarray(0, MAC_BYTES));
  return {
    make: ({ after, fromId }: TaskPosition): string => {
      const position: z.infer<typeof Position> = [after?.changedUs ?? null, after?.id ?? '', fromId];
      const text = JSON.stringify(position);
      return Buffer.concat([...macsOf(text).slice(0, 1), Buffer.from(text)]).toString('base64url');
    },
    /** @throws PlatformError INVALID_PARAMS for a token that was not made for this list */
    read: (token: string): TaskPosition => {
      const bytes = Buffer.from(token, 'base64url');
      const text = bytes.subarray(MAC_BYTES).toString();
      const given = bytes.subarray(0, MAC_BYTES);
      if (bytes.length <= MAC_BYTES || !macsOf(text).some((mac) => timingSafeEqual(given, mac)))
        throw new PlatformError('INVALID_PARAMS', 'params.pageToken: is not the token of a page of this list');
      const [changedUs, id, fromId] = Position.parse(JSON.parse(text));
      return { after: changedUs === null ? null : { changedUs, id }, fromId };
    },
  };
}
