import { beforeEach, expect, test } from 'vitest';
import { countOutcome } from '../../../agents/agent-health.js';
import { createQueues } from '../../../messages/dispatch/queues.js';
import { newId } from '../../../runtime/ids.js';
import { freshDatabase } from '../../setup/database.js';
import { MESH, RecordFixture } from '../../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
const queues = createQueues(fixture.core);
beforeEach(async () => {
  await fixture.reset();
  for (const name of ['good', 'bad']) await fixture.agent(name, { max_concurrent_sessions: 2 });
});

const WORKER = { agent_type: 'worker' };
/** Messages that end on the second agent, `x` for each that its handler fails. */
async function outcomes(instance_id: string, ends: string): Promise<void> {
  for (const end of ends)
    await countOutcome(
      fixture.core.db,
      { tenant_id: fixture.tenantId, instance_id },
      end === 'x' ? 'HANDLER_ERROR' : null,
    );
}
const pauseIsOver = () =>
  database.query('UPDATE agent_outcomes SET paused_until = now() WHERE tenant_id = $1', [fixture.tenantId]);
const sent = async (count: number) => {
  const all: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const { verdict, to } = await fixture.send(WORKER);
    all.push(to || verdict);
  }
  return all.sort();
};
const take = async (instance_id: string) => {
  const ref = { tenant_id: fixture.tenantId, instance_id };
  const ids = Array.from({ length: 4 }, () => newId('dsp'));
  return (await queues.take(ref, { mesh_id: MESH, epoch: 1, as_open: false }, ids)).length;
};

test.each([
  ['', ['bad', 'bad', 'good', 'good']],
  ['xxxx', ['bad', 'bad', 'good', 'good']],
  // It pauses.
  ['xxxxx', ['good', 'good', 'queued', 'queued']],
  ['xoxoxoxox', ['good', 'good', 'queued', 'queued']],
  // Of its last ten fewer than five failed.
  ['xxxxxoooooo', ['bad', 'bad', 'good', 'good']],
])('four messages after the outcomes "%s" of one of two agents go to %j', async (ends, expected) => {
  await outcomes('bad', ends);
  expect(await sent(4)).toEqual(expected);
});

test('after its pause it is tried with one message at a time, behind others', async () => {
  await outcomes('bad', 'xxxxx');
  await pauseIsOver();
  expect(await sent(5)).toEqual(['bad', 'good', 'good', 'queued', 'queued']);
  expect(await take('bad')).toBe(0);
});

test('it takes one message at a time from the queue of its type, and what only it can do at once', async () => {
  await fixture.setAgents("status = 'busy'");
  for (const wish of [WORKER, WORKER, WORKER, { instance_id: 'bad' }]) await fixture.send(wish);
  await outcomes('bad', 'xxxxx');
  await fixture.setAgents("status = 'available'");
  expect(await take('bad')).toBe(1); // the one that names it
  await database.query("UPDATE running_messages SET holds_slot = false WHERE instance_id = 'bad'");
  await pauseIsOver();
  expect(await take('bad')).toBe(1);
  expect(await take('good')).toBe(2);
});

test('where all of a type fail, or it is the only one, nothing is held back', async () => {
  await outcomes('bad', 'xxxxx');
  await outcomes('good', 'xxxxx');
  expect(await sent(4)).toEqual(['bad', 'bad', 'good', 'good']);
});

test('pauses double up to ten seconds, and an agent that is well again is forgotten', async () => {
  const pauses: (number | undefined)[] = [];
  await outcomes('bad', 'xxxx');
  for (let n = 0; n < 8; n += 1) {
    await outcomes('bad', 'x');
    pauses.push(
      await database.value<number>(
        'SELECT extract(epoch FROM paused_until - now())::float8 FROM agent_outcomes WHERE tenant_id = $1',
        [fixture.tenantId],
      ),
    );
  }
  const expected = [0.25, 0.5, 1, 2, 4, 8, 10, 10];
  pauses.forEach((pause, n) => {
    expect(pause).toBeLessThanOrEqual(expected[n] ?? 0);
    expect(pause).toBeGreaterThan((expected[n] ?? 0) / 2 - 0.1);
  });
  await outcomes('bad', 'oooooooooo');
  const rows = await database.value('SELECT count(*)::int FROM agent_outcomes WHERE tenant_id = $1', [
    fixture.tenantId,
  ]);
  expect(rows).toBe(0);
});
