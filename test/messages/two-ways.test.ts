import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MeshBench } from '../mesh/mesh-bench.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { contradictions, leftovers } from '../setup/record-checker.js';
import { Play } from './two-ways/play.js';
import { lastingRecord } from './two-ways/record.js';
import { type Action, script } from './two-ways/script.js';
import { Stage } from './two-ways/stage.js';

const RUNS = Number(process.env.TEST_RUNS ?? 60);
/** A failure prints its seed; run it again with `TEST_SEED=…`. */
const SEED = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);

let database: FreshDatabase;
let bench: MeshBench;
beforeAll(async () => {
  database = await freshDatabase();
  bench = new MeshBench(database);
});
afterAll(() => database.drop());

/** Nothing is executed twice with both results taken; what was taken back, or was due after its lease, was not executed at all. */
async function expectExecutedOnce({ accepted, inbox, lapsed }: Stage): Promise<void> {
  expect(accepted).toEqual([...new Set(accepted)]);
  const { deliveries } = inbox;
  const perSocket = deliveries.map(({ dispatch_id, socket }) => [dispatch_id, socket] as const);
  const repeated = perSocket.filter(([id, socket], index) =>
    perSocket.some(([otherId, other], before) => before < index && otherId === id && other === socket),
  );
  expect(repeated.map(([id]) => id)).toEqual([]);
  const rows = await database.query<{ dispatch_id: string; message_id: string; attempt: number; state: string }>(
    'SELECT dispatch_id, message_id, attempt, state FROM dispatches WHERE tenant_id = $1',
    [bench.tenantId],
  );
  const delivered = new Set(deliveries.map(({ dispatch_id }) => dispatch_id));
  expect(rows.filter(({ dispatch_id, state }) => state === 'void' && delivered.has(dispatch_id))).toEqual([]);
  const late = rows.filter(({ message_id, attempt }) => attempt === 1 && lapsed.includes(message_id));
  expect(late.filter(({ dispatch_id }) => delivered.has(dispatch_id))).toEqual([]);
  // A question ends its dispatch too; what it asks for is carried out by the next one.
  const final = rows.filter(({ dispatch_id, state }) => accepted.includes(dispatch_id) && state !== 'input-required');
  const messages = final.map(({ message_id }) => message_id);
  expect(messages).toEqual([...new Set(messages)]);
}

/** Whoever was told an end of the short way was told what is on the record. */
async function expectToldTheTruth(play: Play): Promise<void> {
  const rows = await database.query<{ message_id: string }>(
    `SELECT message_id, state, error_code, error_message, assistant_output, artifacts, status_message, usage, updated_at,
            completed_at FROM messages WHERE tenant_id = $1`,
    [bench.tenantId],
  );
  for (const row of rows) expect(row).toMatchObject(play.told.get(row.message_id) ?? {});
}

/** Plays the script for a tenant of its own, and gives what is left of it. */
async function outcomeOf(way: 'short way' | 'long way', actions: Action[]): Promise<unknown> {
  await bench.reset();
  const stage = new Stage(bench, way);
  const play = new Play(stage);
  try {
    await play.run(actions);
  } finally {
    await stage.close();
  }
  expect(await contradictions(database)).toEqual([]);
  expect(await leftovers(database)).toEqual([]);
  await expectExecutedOnce(stage);
  await expectToldTheTruth(play);
  return { heard: play.heard, record: await lastingRecord(database, bench.tenantId) };
}

test(
  `both ways of a message end in the same rows and events, whatever goes wrong (seed ${SEED})`,
  async () => {
    const property = fc.asyncProperty(script, async (actions) => {
      const short = await outcomeOf('short way', actions);
      expect(short).toEqual(await outcomeOf('long way', actions));
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: false });
  },
  10_000 * RUNS,
);
