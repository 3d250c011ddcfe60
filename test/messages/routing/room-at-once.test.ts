import { beforeEach, expect, test } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { RecordFixture } from '../../setup/record-fixture.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

const GATE = 'SELECT pg_advisory_xact_lock(1)';
/** The first that wants the room of an agent gets it only once the gate is open: what it has seen before is old by then. */
const LATE_LOCK = `
  CREATE SEQUENCE wanted;
  GRANT USAGE ON SEQUENCE wanted TO PUBLIC;
  CREATE OR REPLACE FUNCTION lock_room_at_once(of_tenant text, of_instance text) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    IF nextval('wanted') = 1 THEN
      PERFORM pg_advisory_xact_lock(1);
    END IF;
    RETURN pg_try_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
  END $$`;
await database.query(LATE_LOCK);

const WISH = `new_routing(tenant_id => $1, want_agent_type => 'worker', reaches_nodes => true)`;

test.each([
  [
    'that has nothing to do',
    { max_concurrent_sessions: 1 },
    `(choose_idle(${WISH}, ARRAY['a'])).instance_id IS NOT NULL`,
  ],
  [
    'for one session at a time',
    { max_concurrent_sessions: 1 },
    `claim_room(${WISH}, 'a', 'worker', 'available', 1, 0)`,
  ],
  [
    'for one message at a time',
    { max_concurrent_sessions: 0, max_concurrent_tasks: 1 },
    `claim_room(${WISH}, 'a', 'worker', 'available', 0, 1)`,
  ],
])('an agent %s is not given twice: it is looked at again with the lock', async (_what, bounds, claims) => {
  await fixture.agent('a', bounds);
  await database.query(`ALTER SEQUENCE wanted RESTART`);
  const gate = await RowLock.on(database.url, GATE, []);
  const claimed = database.value<boolean>(`SELECT ${claims}`, [fixture.tenantId]);
  await until(async () => (await gate.waiters()) === 1, { what: 'the one that wants the room' });
  const sent = await fixture.send({ agent_type: 'worker' }).finally(() => gate.release());
  expect(sent).toMatchObject({ verdict: 'dispatched', to: 'a' });
  expect(await claimed).toBe(false);
});
