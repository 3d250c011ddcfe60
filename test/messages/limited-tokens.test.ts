import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import type { TokenLimits } from '../../contracts/permissions.js';
import { recordEvent } from '../../db/events.js';
import type { Db } from '../../db/pool.js';
import { acceptDeps, acceptMessage } from '../../messages/accept/accept.js';
import { EventOwners } from '../../telemetry/event-owners.js';
import { readEvents } from '../../telemetry/event-reader.js';
import { textMessage } from '../setup/core.js';
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
const db = database.db();
/** The events of the tenant, as streams get them. */
async function itemsOf() {
  await positionAll(db);
  const tenants = [fixture.tenantId];
  const { events } = await db.system((tx) => readEvents(tx, { after: 0, tenants, limit: 100 }));
  return events.map((event) => ({ event }));
}
/** The types of those that such a token gets. */
async function eventsFor(limits: TokenLimits, owners = new EventOwners(db)): Promise<string[]> {
  const visible = await owners.visible(limited(limits), await itemsOf());
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

test('a stream has no event of a plan, a policy or a guard, not even of its user’s message', async () => {
  const { session_id, message_id } = await fixture.queue({ agent_type: 'worker', user_id: 'ann' });
  const tx = { tenant_id: fixture.tenantId, session_id };
  await db.tenant(fixture.tenantId, async (write) => {
    const action = { action: 'send', tool: null, reason: 'It is about another.' };
    await recordEvent(write, tx, 'plan.approved', { plan_id: 'plan_1', approved_by: 'cred_1' });
    await recordEvent(write, tx, 'policy.denied', { policy_id: 'pol_1', policy_name: 'secret', ...action });
    await recordEvent(write, tx, 'guard.approval_required', { guard: 'egress', ...action, path: null, message_id });
  });
  expect((await itemsOf()).map(({ event }) => event.record.category)).toEqual(
    expect.arrayContaining(['plan', 'policy', 'guard']),
  );
  for (const limits of [{ user_id: 'ann' }, { session_id }, { agent_types_allowed: ['worker'] }])
    expect(new Set(await eventsFor(limits))).toEqual(new Set(['session.created', 'message.received']));
});

test('the owners of a page are read once for all streams, and those of sessions again', async () => {
  await fixture.queue({ agent_type: 'worker', user_id: 'ann' });
  const reads: unknown[][] = [];
  const reading: Db = {
    ...db,
    tenant: (tenantId, work) =>
      db.tenant(tenantId, (tx) =>
        work({
          ...tx,
          query: (text, values = [], name) => {
            reads.push(values.slice(1));
            return tx.query(text, values, name);
          },
        }),
      ),
  };
  const owners = new EventOwners(reading);
  const items = await itemsOf();
  const show = (limits: TokenLimits) => owners.visible(limited(limits), items);
  const seen = await Promise.all([show({ user_id: 'ann' }), show({ user_id: 'bob' }), show({ user_id: 'ann' })]);
  expect(seen).toEqual([items, [], items]);
  expect(reads).toHaveLength(1);
  // A session may belong to somebody later.
  await database.query("UPDATE sessions SET user_id = 'bob' WHERE tenant_id = $1", [fixture.tenantId]);
  const later = await show({ user_id: 'bob' });
  expect(later.map(({ event }) => event.record.event_type)).toEqual(['session.created']);
  expect(reads[1]?.[0]).toEqual([]);
});

test('policies see that a token was limited, also those made after its message came', async () => {
  const { core } = fixture;
  Object.assign(core.policies.unconcerned, {
    tenants: new Set([fixture.tenantId]),
    confirmedUntilMs: Number.POSITIVE_INFINITY,
  });
  const sent = async (limits: TokenLimits) => {
    const params = { message: textMessage(), metadata: { agent_type: 'worker' } };
    const [caller, context] = [limited(limits), { method: 'message/send' } as const];
    const { message_id } = await acceptMessage(acceptDeps(core), caller, params, context);
    return database.value<object | null>('SELECT token FROM running_messages WHERE message_id = $1', [message_id]);
  };
  expect(await sent({})).toBeNull();
  const { sub, credential_id, agent_type } = fixture.caller;
  const claims = { sub, credential_id, agent_type, scopes: ['read'] };
  expect(await sent({ user_id: 'ann' })).toEqual({ ...claims, user_id: 'ann' });
  expect(await sent({ agent_types_allowed: ['worker'] })).toEqual({ ...claims, agent_types: ['worker'] });
});
