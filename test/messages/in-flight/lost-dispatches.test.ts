import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { LostDispatches } from '../../../messages/runner/lost-dispatches.js';
import { freshDatabase } from '../../setup/database.js';
import { MESH, RecordFixture, type Sent } from '../../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

/** The dispatches that the node of the agents does not run; what is written fails or succeeds at once. */
const lostDispatches = () =>
  new LostDispatches({ dispatches: fixture.dispatches, meshId: MESH, log: fixture.core.log }, (work) => work());

/** A message that the record says its agent has. */
async function sent(): Promise<Sent> {
  const message = await fixture.send();
  expect(message.verdict).toBe('dispatched');
  return message;
}

const stateOf = ({ dispatch_id }: Sent) =>
  database.value<string>('SELECT state FROM dispatches WHERE dispatch_id = $1', [dispatch_id]);

test('a dispatch that cannot be ended keeps no other waiting, and is tried again', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  await fixture.agent('a', { max_concurrent_sessions: 0 });
  const [broken, other] = [await sent(), await sent()];
  await database.query(`
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no such end'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON dispatches FOR EACH ROW WHEN (NEW.message_id = '${broken.message_id}') EXECUTE FUNCTION public.refuse()`);
  const lost = lostDispatches();
  for (const { tenant_id, dispatch_id } of [broken, other]) lost.note({ tenant_id, dispatch_id, nothingSent: true });
  vi.advanceTimersByTime(6_000);
  await lost.mend();
  expect([await stateOf(broken), await stateOf(other)]).toEqual(['sent', 'released']);
  await database.query('DROP TRIGGER refuse ON dispatches');
  vi.advanceTimersByTime(600_000);
  await lost.mend();
  expect(await stateOf(broken)).toBe('released');
});

test('a message whose agent comes back without its dispatch goes on at once', async () => {
  await fixture.agent('a');
  const { session_id: _, ...ref } = await sent();
  await lostDispatches().endUnowned({ ...ref, mesh_id: MESH });
  expect(fixture.advanced).toEqual([ref.message_id]);
});

test('a message goes on also where only the answer of its release was lost', async () => {
  await fixture.agent('a');
  const ref = await sent();
  for (let call = 1; call <= 2; call += 1) await fixture.dispatches.release(ref, 'NEVER_SENT', { nothingSent: true });
  expect(fixture.advanced).toEqual([ref.message_id, ref.message_id]);
});
