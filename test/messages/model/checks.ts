import { expect } from 'vitest';
import { isTerminal } from '../../../contracts/message-states.js';
import { contradictions, leftovers } from '../../setup/histories/record-checker.js';
import { lookAt } from '../../setup/take.js';
import { TENANT } from './deciders.js';
import { movedBySweepers } from './moved-by-sweepers.js';
import type { RecordWorld } from './world.js';

/** A message or a request to humans that had ended has not changed since. */
async function expectEndsKept(world: RecordWorld): Promise<void> {
  const requests = await world.database.query<{ id: string; stage: string; state: string; how: string }>(
    `SELECT request_id AS id, stage, state, concat(state, answer, digest, ended_at, (SELECT count(*) FROM input_decisions d
        WHERE d.request_id = r.request_id)) AS how FROM input_requests r`,
  );
  const messages = (await world.messages()).map(({ message_id: id, state, ended }) => ({ id, state, how: ended }));
  const over = [
    ...messages.filter(({ state }) => isTerminal(state)),
    ...requests.filter(({ state }) => state !== 'pending'),
  ];
  const all = new Map([...messages, ...requests].map(({ id, how }) => [id, how]));
  for (const [id, how] of world.ended) expect(all.get(id)).toBe(how);
  for (const { id, state, how } of over) {
    world.seen.note(state, !world.ended.has(id));
    world.ended.set(id, how);
  }
  for (const { stage } of requests) world.seen.note(stage);
}

/** Messages that were decided about, of which no workflow has made anything yet and that nobody would wake: neither routed nor waiting. */
const LOST_WAKE_UPS = `
  SELECT message_id FROM running_messages
   WHERE wake_requested_at IS NULL AND (state = 'failed' OR state = 'working' AND resolution IS NOT NULL
     AND current_dispatch_id IS NULL AND unrouted_since IS NULL)`;

/** The audit trail has all decisions that succeeded, and at most those without an answer. */
async function expectDecisionsKept({ database, taken, untold }: RecordWorld): Promise<void> {
  const rows = await database.query<{ message_id: string; made: number }>(
    `SELECT message_id, count(d.*) FILTER (WHERE d.principal_type <> 'system')::int AS made
       FROM messages LEFT JOIN input_decisions d USING (tenant_id, message_id) GROUP BY message_id`,
  );
  for (const { message_id, made } of rows) {
    const acknowledged = taken.get(message_id) ?? 0;
    expect(made, `decisions about ${message_id}`).toBeGreaterThanOrEqual(acknowledged);
    expect(made, `decisions about ${message_id}`).toBeLessThanOrEqual(acknowledged + (untold.get(message_id) ?? 0));
  }
}

/** Each grant let one call pass, with what was approved. */
async function expectGrantsUsedOnce({ database, passed }: RecordWorld): Promise<void> {
  if (passed.size === 0) return;
  const requests = await database.query<{ request_id: string; answer: { resolution: string }; arguments: object }>(
    'SELECT request_id, answer, arguments FROM input_requests WHERE request_id = ANY ($1)',
    [[...passed.keys()]],
  );
  for (const { request_id, answer, arguments: approved } of requests) {
    expect(answer.resolution).toBe('approved');
    expect(passed.get(request_id)).toEqual([approved]);
  }
}

/** What holds at every moment. */
export async function expectSound(world: RecordWorld): Promise<void> {
  expect(await contradictions(world.database)).toEqual([]);
  expect(await world.database.query(LOST_WAKE_UPS)).toEqual([]);
  await expectEndsKept(world);
  await expectDecisionsKept(world);
  await expectGrantsUsedOnce(world);
}

/** Asked twice in a row, `takeStep` gives the same step. */
async function expectStepsRepeat(world: RecordWorld): Promise<void> {
  for (const { message_id } of await world.messages()) {
    const ref = { tenant_id: TENANT, message_id };
    const first = await lookAt(world.whole, ref);
    const second = await lookAt(world.whole, ref);
    expect(second?.kind).toBe(first?.kind);
    if (first?.kind !== 'result') continue;
    expect(second).toMatchObject({ dispatch_id: first.dispatch_id });
    world.seen.note('repeated dispatch');
  }
}

/** After the death of its process sweepers move whatever can go on, and everything can be ended. */
export async function expectSoundEnd(world: RecordWorld): Promise<void> {
  world.restart();
  expect(await movedBySweepers(world.database, world.whole)).toEqual([]);
  await expectStepsRepeat(world);
  await expectSound(world);
  await world.finishAll();
  expect(await leftovers(world.database)).toEqual([]);
  await expectEndsKept(world);
  expect([...world.once].filter(([, times]) => times > 1)).toEqual([]);
}
