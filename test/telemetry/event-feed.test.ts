import { expect, test } from 'vitest';
import { createLogger } from '../../runtime/logger.js';
import { EventFeed } from '../../telemetry/event-feed.js';
import type { FeedEvent } from '../../telemetry/feed-reader.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { positionAll, writeEvent } from './event-writer.js';

const ROUNDS = 5;

const database = await freshDatabase();
const db = database.db();
const tenantId = await insertTenant(database);

/** Writes an event that readers may see. @returns its id */
async function write(): Promise<string> {
  const id = await writeEvent(database, tenantId);
  await positionAll(db);
  return id;
}

/** The id of the next event of a reader. */
async function next(reader: AsyncGenerator<FeedEvent, never>): Promise<string> {
  const { value } = await reader.next();
  return value.event.record.event_id;
}

test('a reader that has read further than the feed is given nothing twice', async () => {
  const feed = new EventFeed(db, createLogger({ level: 'silent' }));
  cleanUp(() => feed.stop());
  const signal = new AbortController().signal;
  const follow = () => {
    return feed.follow({ tenantId, after: 0, signal, accepts: () => true, onTooSlow: () => undefined });
  };
  const first = follow();
  const written = [await write()];
  expect(await next(first)).toBe(written[0]);
  // From here on the feed has a reader, and a place of its own.
  const following = next(first);
  written.push(await write());
  expect(await following).toBe(written[1]);
  for (let round = 0; round < ROUNDS; round += 1) {
    written.push(await write());
    const late = follow(); // mostly reads this before the feed does
    for (const id of written) expect(await next(late)).toBe(id);
    const following = next(late);
    written.push(await write());
    expect(await following).toBe(written.at(-1));
    await late.return(undefined as never);
  }
});
