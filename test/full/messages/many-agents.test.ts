import { beforeEach, expect, test } from 'vitest';
import { textMessage } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { RecordFixture, type Sent } from '../../setup/record-fixture.js';
import { rowsByIndex } from '../../setup/rows-read.js';

const AGENTS = 300;
const CALLS = 30;
/** Rows that one message may read by one index, dead ones left out; with a look at each agent it would read hundreds. */
const ROWS_MOST = 40;
const READ_BY_ROUTING = /^(agents|agent_skills|agent_reports|running_messages|sessions|mesh_nodes)$/;
const WORKER = { agent_type: 'worker' };
const SUMS = { skill_id: 'sums' };

const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

async function agents(max_concurrent_sessions: number): Promise<void> {
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, mesh_id, connection_epoch, max_concurrent_sessions, skills)
     SELECT $1, 'a' || n, 'worker', 'connected', 'available', 'mesh_1', 1, $2, '[{"id": "sums"}]' FROM generate_series(1, $3::int) AS n`,
    [fixture.tenantId, max_concurrent_sessions, AGENTS],
  );
}

/** Gives each agent a message that it never answers. */
async function fill(): Promise<void> {
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, instance_id, agent_type, want_agent_type, holds_slot, current_dispatch_id)
     SELECT tenant_id, 'msg_' || tenant_id || instance_id, 'ses_' || tenant_id || instance_id, 'working', instance_id, agent_type, agent_type, true,
            'dsp_' || instance_id FROM agents WHERE tenant_id = $1`,
    [fixture.tenantId],
  );
}

/** Frees one agent amid the others. @returns its id */
async function freeOne(): Promise<string | undefined> {
  return database.value(
    `DELETE FROM running_messages WHERE message_id = (SELECT message_id FROM running_messages
        WHERE tenant_id = $1 AND holds_slot ORDER BY instance_id OFFSET 170 LIMIT 1) RETURNING instance_id`,
    [fixture.tenantId],
  );
}

/** What was dispatched just now was dispatched a minute ago. */
async function minuteLater(): Promise<void> {
  await database.query("UPDATE dispatches SET created_at = created_at - interval '1 min' WHERE tenant_id = $1", [
    fixture.tenantId,
  ]);
}

const foundFull = () =>
  database.value('SELECT count(*)::int FROM agents WHERE tenant_id = $1 AND full_at IS NOT NULL', [fixture.tenantId]);

/** The most rows that one index gave for each call of `work`. */
async function mostRows(work: (own: RecordFixture) => Promise<unknown>): Promise<number> {
  const read = await rowsByIndex(database, READ_BY_ROUTING, async (db) => {
    const own = new RecordFixture(database, { db });
    own.tenantId = fixture.tenantId;
    for (let call = 0; call < CALLS; call += 1) await work(own);
  });
  const { running_in_flight: _, ...others } = read;
  return Math.max(...Object.values(others)) / CALLS;
}

test.each([[WORKER], [SUMS], [{ ...WORKER, ...SUMS }]])(
  'a message %j reads no more with hundreds of agents, with room, full, and full with messages that wait',
  async (wish) => {
    await agents(1);
    expect(await mostRows((own) => own.send(wish))).toBeLessThan(ROWS_MOST);
    await fill();
    await minuteLater();
    const waiting = await fixture.waiting(wish);
    expect(await foundFull()).toBe(AGENTS);
    for (let more = 0; more < 50; more += 1) await fixture.waiting(wish);
    expect(await mostRows((own) => own.send(wish))).toBeLessThan(ROWS_MOST);
    expect(await mostRows((own) => own.look(waiting))).toBeLessThan(ROWS_MOST);
  },
);

test.each([[WORKER], [SUMS], [{ ...WORKER, ...SUMS }]])(
  'the only free one of hundreds is found for %j',
  async (wish) => {
    await agents(1);
    await fill();
    const free1 = await freeOne();
    const first = await fixture.queue(wish);
    expect(await fixture.look(first)).toMatchObject({ kind: 'result', instance_id: free1 });
    await fixture.waiting(wish);
  },
);

test('whoever ends makes room for the next message at once, wherever samples do not look any more', async () => {
  await agents(1);
  const running: Sent[] = [];
  for (let sent = 0; sent < AGENTS; sent += 1) {
    const next = await fixture.send(WORKER, { offers: sent % 2 === 0 });
    if (next.verdict === 'dispatched') running.push(next);
    else {
      await minuteLater();
      expect((await fixture.look(next))?.kind).toBe('result');
    }
  }
  await minuteLater();
  const waiting = await fixture.waiting(WORKER);
  expect(await foundFull()).toBe(AGENTS);
  for (const [ended, next] of [
    [running[0], waiting],
    [running[1], await fixture.waiting(WORKER)],
  ] as [Sent, Sent][]) {
    await fixture.answer(ended);
    expect(await fixture.takes(ended.to ?? '')).toEqual([next.message_id]);
  }
  await fixture.answer(running[2] as Sent);
  expect(await fixture.send(WORKER)).toMatchObject({ verdict: 'dispatched', to: running[2]?.to });
});

test('an agent that is noted as full by mistake is found again', async () => {
  await agents(1);
  await fill();
  const waiting = await fixture.waiting(WORKER);
  const mistaken = await freeOne(); // by no transaction of the platform, so the note stays
  expect((await fixture.look(waiting))?.kind).toBe('room');
  await fixture.setAgents("full_at = full_at - interval '6 s'");
  let step = await fixture.look(waiting);
  if (step?.kind === 'room') step = await fixture.look(waiting);
  expect(step).toMatchObject({ kind: 'result', instance_id: mistaken });
  expect(await foundFull()).toBe(AGENTS - 1);
});

test('sessions find their agents in the same way, and a refusal notes who is full', async () => {
  await agents(1);
  await fill();
  const init = () => fixture.sessions.init(fixture.caller, { ...WORKER, idle_timeout_seconds: 0, reserve: true });
  const free1 = await freeOne();
  expect(await init()).toMatchObject({ instance_id: free1 });
  await expect(init()).rejects.toMatchObject({ code: 'AGENT_AT_CAPACITY' });
  await fixture.setAgents('full_at = NULL');
  await expect(init()).rejects.toMatchObject({ code: 'AGENT_AT_CAPACITY' });
  expect(await foundFull()).toBe(AGENTS);
});

test('of agents without a bound those with the fewest sessions are taken, however many those have', async () => {
  for (const instance_id of ['many', 'few']) await fixture.agent(instance_id, { max_concurrent_sessions: 0 });
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, instance_id, agent_type)
     SELECT $1, 'ses_' || $1 || n, true, 'active', 0, CASE WHEN n > 10 THEN 'many' ELSE 'few' END, 'worker' FROM generate_series(1, 3000) AS n`,
    [fixture.tenantId],
  );
  expect(await fixture.send(WORKER)).toMatchObject({ to: 'few' });
  expect(await mostRows((own) => own.send(WORKER))).toBeLessThan(3 * 100);
});

test('a message with media types reads no more with hundreds of agents, each declaration once', async () => {
  await agents(1);
  await fixture.setAgents(`agent_card = CASE WHEN instance_id = 'a7' THEN '{"defaultOutputModes": ["image/png"]}'
     ELSE '{"defaultOutputModes": ["text/plain"]}' END::jsonb`);
  const send = ({ gateway, caller }: RecordFixture, acceptedOutputModes: string[], metadata: object) => {
    const params = { message: textMessage(), metadata: { ...metadata }, configuration: { acceptedOutputModes } };
    return gateway.accept(caller, params, { method: 'message/send' });
  };
  for (const wish of [WORKER, {}]) {
    await expect(send(fixture, ['text/csv'], wish)).rejects.toMatchObject({ code: 'CONTENT_TYPE_NOT_SUPPORTED' });
    expect(await mostRows((own) => send(own, ['image/png'], wish))).toBeLessThan(ROWS_MOST);
  }
});
