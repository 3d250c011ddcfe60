import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../../contracts/api/auth.js';
import { type AcceptRow, runAcceptTransaction, UNCOUNTED } from '../../../messages/accept/accept-transaction.js';
import { draftOf } from '../../../messages/accept/draft.js';
import { sessionDeps } from '../../../messages/cancel.js';
import { newId } from '../../../runtime/ids.js';
import { createSessions } from '../../../sessions/sessions.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';

const database = await freshDatabase();
const core = messageCore(database.db());
const sessions = createSessions(sessionDeps(core));
const MESH = 'mesh_1';
let caller: Caller;
beforeEach(async () => {
  caller = callerOf(await insertTenant(database));
});

/** The agents of the tests, by name: columns that differ from a free connected one. */
const AGENTS = {
  free: {},
  saturated: { saturated_until: 'tomorrow' },
  saturated2: { saturated_until: 'tomorrow' },
  recovered: { saturated_until: 'yesterday' },
  busy: { status: 'busy' },
  full: { max_concurrent_sessions: 1 },
  offline: { status: 'offline', mesh_id: null },
  skilled: { status: 'offline', mesh_id: null, skills: '[{"id": "sums"}]' },
  hosted: { public_url: 'http://192.0.2.1/', mesh_id: null, saturated_until: 'tomorrow' },
} as const;

async function register(names: (keyof typeof AGENTS)[]): Promise<void> {
  for (const name of names) {
    const { tenant_id } = caller;
    await insertAgent(database, { mesh_id: MESH, ...AGENTS[name], tenant_id, instance_id: `${tenant_id}-${name}` });
  }
}

async function send(
  metadata: Record<string, unknown>,
  offers: boolean,
  contextId?: string,
  messageId = newId('req'),
): Promise<AcceptRow> {
  const part = { kind: 'text' as const, text: 'hello' };
  const message = { kind: 'message' as const, messageId, role: 'user' as const, parts: [part], contextId };
  const draft = draftOf(caller, { message, metadata }, { method: 'message/send' });
  const offer = offers ? { dispatch_id: newId('dsp'), mesh_id: MESH, any_mesh: false } : null;
  return runAcceptTransaction(core.db, draft, { counting: UNCOUNTED, offer, idempotencyHours: 1 });
}

async function written(): Promise<number> {
  const rows = await database.query('SELECT 1 FROM messages WHERE tenant_id = $1', [caller.tenant_id]);
  return rows.length;
}

test.each<[(keyof typeof AGENTS)[], Record<string, unknown>, string, string]>([
  [['saturated'], {}, 'agents_saturated', 'agents_saturated'],
  [['saturated', 'saturated2', 'hosted'], {}, 'agents_saturated', 'agents_saturated'],
  [['saturated', 'offline'], {}, 'agents_saturated', 'agents_saturated'],
  [['saturated', 'free'], {}, 'dispatched', 'accepted'],
  [['recovered'], {}, 'dispatched', 'accepted'],
  // These are waited for.
  [['saturated', 'busy'], {}, 'accepted', 'accepted'],
  [['offline'], {}, 'accepted', 'accepted'],
  [['saturated', 'skilled'], { skill_id: 'sums' }, 'accepted', 'accepted'],
])('agents %j and a message %j: %s, and %s on the workflow path', async (names, wish, fast, queued) => {
  await register(names);
  expect((await send({ agent_type: 'worker', ...wish }, true)).verdict).toBe(fast);
  expect((await send({ agent_type: 'worker', ...wish }, false)).verdict).toBe(queued);
  expect(await written()).toBe([fast, queued].filter((verdict) => verdict !== 'agents_saturated').length);
});

test('an agent that is full by its sessions is waited for, beside a saturated one', async () => {
  await register(['saturated', 'full']);
  expect((await send({}, true)).instance_id).toBe(`${caller.tenant_id}-full`);
  expect((await send({}, true)).verdict).toBe('accepted');
});

test('a message that names a saturated agent, or whose session has it, is refused although another is free', async () => {
  await register(['free']);
  const { session } = await sessions.init(caller, { agent_type: 'worker', idle_timeout_seconds: 0 });
  await database.query(`UPDATE agents SET saturated_until = 'tomorrow' WHERE tenant_id = $1`, [caller.tenant_id]);
  await register(['busy', 'recovered']);
  for (const offers of [true, false]) {
    const named = await send({ instance_id: `${caller.tenant_id}-free` }, offers);
    expect(named.verdict).toBe('agents_saturated');
    expect((await send({}, offers, session.session_id)).verdict).toBe('agents_saturated');
  }
  expect((await send({}, true)).instance_id).toBe(`${caller.tenant_id}-recovered`);
});

test('a repeat finds its message while all agents are saturated', async () => {
  await register(['free']);
  const first = await send({}, true, undefined, 'mine');
  await database.query(`UPDATE agents SET saturated_until = 'tomorrow' WHERE tenant_id = $1`, [caller.tenant_id]);
  expect(await send({}, true, undefined, 'mine')).toMatchObject({ verdict: 'repeat', message_id: first.message_id });
});
