import { z } from 'zod';
import { createCursors } from '../../../db/pages/cursors.js';
import { PlatformError } from '../../../runtime/errors.js';
import type { Secrets } from '../../../runtime/secrets.js';
import type { TaskPosition } from './task-walk.js';

const Id = z.string().max(200);
/** The last task (time of its change, id; null before the first one), and the id from which messages are read. */
const Position = z.tuple([z.int().min(0).nullable(), Id, Id.nullable()]);

/**
 * The page tokens of one list of tasks.
 * @param list what makes the list another one: the tenant, the reader's type and the filters
 */
export function createPageTokens(secrets: Pick<Secrets, 'macs'>, list: unknown[]) {
  const refusal = () =>
    new PlatformError('INVALID_PARAMS', 'params.pageToken: is not the token of a page of this list');
  const cursors = createCursors(secrets, { purpose: 'task-page-token', list, schema: Position, refusal });
  return {
    make: ({ after, fromId }: TaskPosition): string =>
      cursors.make([after?.changedUs ?? null, after?.id ?? '', fromId]),
    /** @returns null without a token. @throws PlatformError INVALID_PARAMS for a token that was not made for this list */
    read: (token: string | undefined): TaskPosition | null => {
      const position = cursors.read(token);
      if (!position) return null;
      const [changedUs, id, fromId] = position;
      return { after: changedUs === null ? null : { changedUs, id }, fromId };
    },
  };
}
