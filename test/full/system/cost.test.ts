import { expect, test } from 'vitest';
import { policyFor } from '../../policy/policy-fixture.js';
import { echo } from '../../setup/agent.js';
import { freshDatabase } from '../../setup/database.js';
import type { SendOptions } from '../../setup/platform/api-client.js';
import { countedPostgres, type Statement } from '../../setup/platform/counted-postgres.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';
import { initSession, joinType, looksOf, to } from '../../system/fixture.js';

/**
 * Round trips on tenants' connections to Postgres that one `/send` to a connected agent costs at most, which answers at once, and a stream that
 * is read to its end: a caller looks at the message once more or less often as it moves.
 */
const MOST = 2;
/** So many that one statement in some of them would show. */
const SENDS = 10;

/** How often each statement ran, one line for each. */
function tally(statements: Statement[]): string {
  const counts = new Map<string, number>();
  for (const { sql } of statements) {
    const line = sql.trim().replaceAll(/\s+/g, ' ').slice(0, 100);
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => `${count} x ${line}`).join('\n');
}

const database = await freshDatabase();
const postgres = await countedPostgres(database.url);
const shared = await startPlatform({ DATABASE_URL: postgres.url }, { database });
const { client } = shared.platform;
const { hasWorkflow } = looksOf(shared);
await joinType(shared.platform, 'echo', echo);
const contextId = await initSession(client, { instance_id: 'echo-1' });
const watched = 'SELECT 1 FROM sessions WHERE session_id = $1 AND supervised_at IS NOT NULL';
const isWatched = async () => (await database.query(watched, [contextId])).length > 0;
await until(isWatched, { what: 'the first look of the session’s workflow' });

/** Sends one after the other. */
const sendAll = async (options: SendOptions): Promise<string[]> => {
  const ids: string[] = [];
  for (let sent = 0; sent < SENDS; sent += 1) {
    ids.push((await client.send(`hello ${sent}`, options)).id);
  }
  return ids;
};
/** At most so many for each send; two at least, or they were not seen: it is accepted and completed. */
const expectRoundTrips = async (most: number, work: () => Promise<unknown>) => {
  await work(); // the first ones read what the next ones know
  postgres.take();
  await work();
  const statements = postgres.take().filter(({ application }) => application === 'fleet_app');
  expect(statements.length / SENDS, tally(statements)).toBeLessThanOrEqual(most);
  expect(statements.length / SENDS, tally(statements)).toBeGreaterThanOrEqual(2);
};

test.each<[string, SendOptions]>([
  ['in a session', { contextId }],
  ['that opens a session', to('echo')],
  ['that names no target', {}],
])('one send of a message %s takes its round trips and no workflow', async (_what, options) => {
  let ids: string[] = [];
  await expectRoundTrips(MOST, async () => {
    ids = await sendAll(options);
  });
  for (const id of ids) expect(await hasWorkflow(id)).toBe(false);
});

test('one send of a tenant with a hundred policies takes the same round trips', async () => {
  for (let n = 0; n < 100; n += 1) {
    const match = { agent_types: [`type-${n}`], arguments: [{ path: 'metadata.a', op: 'eq' as const, value: n }] };
    await policyFor(client, { scope: n % 2 === 0 ? 'admission' : 'dispatch', decision: 'deny', match });
  }
  await expectRoundTrips(MOST, () => sendAll({ contextId }));
});

test('one stream takes its round trips, no more', async () => {
  const streamAll = async () => {
    for (let sent = 0; sent < SENDS; sent += 1) {
      const events = [];
      for await (const event of client.stream('hello', { contextId })) events.push(event);
      expect(events.at(-1)).toMatchObject({ final: true });
    }
  };
  await expectRoundTrips(MOST, streamAll);
});
