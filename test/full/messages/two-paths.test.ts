import { expect, test } from 'vitest';
import { DatabaseClock } from '../../../db/database-clock.js';
import { MeshFixture } from '../../mesh/mesh-fixture.js';
import { cleanUp } from '../../setup/clean-up.js';
import { freshDatabase } from '../../setup/database.js';
import { leftovers } from '../../setup/histories/record-checker.js';
import { expectScripts, type Script } from '../../setup/model.js';
import { runsOf } from '../../setup/seed.js';
import { Harness } from './two-paths/harness.js';
import type { Way } from './two-paths/process.js';
import { lastingRecord } from './two-paths/record.js';
import { Runner, scripts } from './two-paths/runner.js';

const RUNS = runsOf(3, 50);

const database = await freshDatabase();
const fixture = new MeshFixture(database);
const clock = new DatabaseClock(fixture.core.db, fixture.core.log);
clock.start();
cleanUp(() => clock.stop());
/** What has happened in all runs: comparisons of nothing would hold too. */
const counts = { accepted: 0, deliveries: 0, fastPathEnds: 0, faults: 0 };

/** Nothing is executed twice with both results taken; what was taken back, or was due after its lease, was not executed at all. */
async function expectExecutedOnce({ accepted, inbox, lapsed }: Harness): Promise<void> {
  expect(accepted).toEqual([...new Set(accepted)]);
  const { deliveries } = inbox;
  const perSocket = deliveries.map(({ dispatch_id, socket }) => [dispatch_id, socket] as const);
  const repeated = perSocket.filter(([id, socket], index) =>
    perSocket.some(([otherId, other], before) => before < index && otherId === id && other === socket),
  );
  expect(repeated.map(([id]) => id)).toEqual([]);
  const rows = await database.query<{ dispatch_id: string; message_id: string; attempt: number; state: string }>(
    'SELECT dispatch_id, message_id, attempt, state FROM dispatches WHERE tenant_id = $1',
    [fixture.tenantId],
  );
  const delivered = new Set(deliveries.map(({ dispatch_id }) => dispatch_id));
  expect(rows.filter(({ dispatch_id, state }) => state === 'released' && delivered.has(dispatch_id))).toEqual([]);
  const late = rows.filter(({ message_id, attempt }) => attempt === 1 && lapsed.includes(message_id));
  expect(late.filter(({ dispatch_id }) => delivered.has(dispatch_id))).toEqual([]);
  // A question ends its dispatch too; what it asks for is carried out by the next one.
  const final = rows.filter(({ dispatch_id, state }) => accepted.includes(dispatch_id) && state !== 'input_required');
  const messages = final.map(({ message_id }) => message_id);
  expect(messages).toEqual([...new Set(messages)]);
}

/** The ends that callers were given by the fast path are those on the record. */
async function expectEndsOnRecord(runScript: Runner): Promise<void> {
  const rows = await database.query<{ message_id: string }>(
    `SELECT message_id, state, error_code, error_message, artifacts, status_message, usage, updated_at,
            completed_at FROM messages WHERE tenant_id = $1`,
    [fixture.tenantId],
  );
  for (const [id, end] of runScript.ends) expect(rows.find((row) => row.message_id === id)).toMatchObject(end);
}

/** Runs the script for a tenant of its own, and gives what is left of it. */
async function outcomeOf(way: Way, script: Script): Promise<unknown> {
  await fixture.reset();
  const harness = new Harness(fixture, way, clock);
  const runScript = new Runner(harness);
  try {
    await runScript.run(script);
  } finally {
    await harness.close();
  }
  expect(await leftovers(database)).toEqual([]);
  await expectExecutedOnce(harness);
  await expectEndsOnRecord(runScript);
  counts.accepted += harness.accepted.length;
  counts.deliveries += harness.inbox.deliveries.length;
  counts.fastPathEnds += runScript.ends.size;
  counts.faults += harness.faults.happened;
  return { answers: runScript.answers, record: await lastingRecord(database, fixture.tenantId) };
}

test(
  'every path of a message ends in the same rows and events, whatever goes wrong',
  async () => {
    const sameOnEachPath = async (script: Script) => {
      const expected = await outcomeOf('workflow path', script);
      for (const way of ['fast path', 'forwarded'] as const)
        expect(await outcomeOf(way, script), way).toEqual(expected);
    };
    await expectScripts(scripts, sameOnEachPath, { runs: RUNS });
    for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(0);
  },
  10_000 * RUNS,
);
