import { expect, test } from 'vitest';
import { QueueWatch } from '../../messages/supervise/queue-watch.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database, { limits: { watchAfterMs: 10_000 } });

test('of each queue of a tenant the first messages get workflows, also beside a queue that is long', async () => {
  await fixture.reset();
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, queue, created_at, unrouted_since)
       SELECT $1, 'msg_' || queue || n, 'ses_1', 'submitted', '/' || queue || '/', now() - n * interval '1 min', since
         FROM (VALUES ('a', 150, now() - interval '11 s'), ('b', 1, now() - interval '11 s'), ('c', 1, now()))
           AS waiting (queue, count, since) CROSS JOIN LATERAL generate_series(1, count) AS n`,
    [fixture.tenantId],
  );
  const started: string[] = [];
  const message = ({ message_id }: { message_id: string }) => void started.push(message_id);
  const watch = new QueueWatch({ ...fixture.core, workflowStarter: { message, session: () => undefined } });
  for (let round = 1; round <= 10; round += 1) await watch.look();
  const oldestOfA = Array.from({ length: 66 }, (_, place) => `msg_a${150 - place}`);
  expect(started).toEqual([...oldestOfA, 'msg_b1']);
});
