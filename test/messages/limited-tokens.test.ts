import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import type { TokenLimits } from '../../contracts/limited-tokens.js';
import { EventOwners } from '../../telemetry/event-owners.js';
import { readEvents } from '../../telemetry/event-reader.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';
import { positionAll } from '../telemetry/event-writer.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
const { sessions } = fixture;
beforeEach(async () => {
  await fixture.reset();
  await fixture.agent('worker-1');
});

const limited = (limits: TokenLimits): Caller => ({ ...fixture.caller, scopes: ['read'], ...limits });
const sees = (limits: TokenLimits, session_id: string) =>
  sessions.get(limited(limits), session_id).then(
    () => true,
    () => false,
  );
/** The types of the events of the tenant that such a token gets. */
async function eventsFor(limits: TokenLimits): Promise<string[]> {
  await positionAll(database.db());
  const tenants = [fixture.tenantId];
  const { events } = await database.db().system((tx) => readEvents(tx, { after: 0, tenants, limit: 100 }));
  const items = events.map((event) => ({ event }));
  const visible = await new EventOwners(database.db()).visible(limited(limits), items);
  return visible.map(({ event }) => event.record.event_type);
}

test('a session without a type is within agent types for its user, and for who is limited to it', async () => {
  const { session } = await sessions.init(fixture.caller, { user_id: 'ann', idle_timeout_seconds: 1_800 });
  const { session_id } = session;
  const agent_types_allowed = ['worker'];
  const ofAnn = { user_id: 'ann', agent_types_allowed };
  const table: [TokenLimits, boolean][] = [
    [ofAnn, true],
    [{ session_id, agent_types_allowed }, true],
    [{ user_id: 'bob', agent_types_allowed }, false],
    [{ session_id: 'another', agent_types_allowed }, false],
    [{ agent_types_allowed }, false],
  ];
  for (const [limits, expected] of table) {
    expect(await sees(limits, session_id)).toBe(expected);
    expect(await eventsFor(limits)).toEqual(expected ? ['session.created'] : []);
  }
  // Its first message gives it a type, also before an agent has it.
  await fixture.queue({ agent_type: 'worker' }, session_id);
  expect(await sees(ofAnn, session_id)).toBe(true);
  expect(await eventsFor(ofAnn)).toEqual(['session.created', 'message.received']);
  for (const named of [{ user_id: 'ann' }, { session_id }]) {
    const limits = { ...named, agent_types_allowed: ['painter'] };
    expect(await sees(limits, session_id)).toBe(false);
    expect(await eventsFor(limits)).toEqual([]);
  }
});
