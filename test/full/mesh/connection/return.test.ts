import { expect, it, onTestFinished } from 'vitest';
import { type FixtureAgent, receive } from '../../../mesh/fixture-agent.js';
import { MeshFixture } from '../../../mesh/mesh-fixture.js';
import { freshDatabase } from '../../../setup/database.js';
import { until } from '../../../setup/until.js';

/** Agents of the node that dies; more with `MESH_RETURNING`. */
const AGENTS = Math.max(1_000, Number(process.env.MESH_RETURNING ?? 0));
/** Of them, so many are in a session, and so many work when the node dies. */
const SESSIONS = 50;
const AT_WORK = 20;

const database = await freshDatabase();
const fixture = await new MeshFixture(database).reset();

const name = (index: number) => `agent-${index}`;

const registerAll = () =>
  database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions)
     SELECT $1, 'agent-' || n, 'worker', 'connected', 'offline', 0 FROM generate_series(0, $2 - 1) AS n`,
    [fixture.tenantId, AGENTS],
  );

/** The session of a message, with the agent that it keeps. */
async function sessionOf(messageId: string) {
  const [row] = await database.query<{ session_id: string; status: string; instance_id: string }>(
    `SELECT session_id, s.status, a.instance_id FROM messages m JOIN sessions s USING (tenant_id, session_id)
       JOIN session_members a USING (tenant_id, session_id) WHERE m.message_id = $1`,
    [messageId],
  );
  return row;
}

it('takes all agents of a dead node back at once: none is lost, nor a session, and others are served meanwhile', async () => {
  await registerAll();
  await fixture.register('resident');
  const [dying, next] = [await fixture.node(), await fixture.node()];
  const { agent: resident } = await next.join('resident');
  const indexes = Array.from({ length: AGENTS }, (_, index) => index);
  const token = await fixture.token();
  const agents: FixtureAgent[] = [];
  for (let from = 0; from < AGENTS; from += 50) {
    const some = indexes.slice(from, from + 50);
    agents.push(
      ...(await Promise.all(some.map(async (index) => (await dying.join(name(index), {}, { token })).agent))),
    );
  }
  expect(dying.server.stats().ready).toBe(AGENTS);
  const before = await Promise.all(
    agents.slice(0, SESSIONS).map(async (agent, index) => dying.send(agent, 'before', { instance_id: name(index) })),
  );
  const ended = before.slice(AT_WORK);
  for (const { dispatch } of ended) dispatch.result('done');
  await Promise.all(ended.map(({ end }) => end));

  // The sockets end without a word, as when a process is killed.
  for (const agent of agents) agent.kill();
  await until(() => dying.server.stats().ready === 0);
  let probes = 0;
  let done = false;
  const probing = (async () => {
    while (!done) {
      const { end, dispatch } = await next.send(resident, 'meanwhile', { instance_id: 'resident' });
      dispatch.result('here');
      await end;
      probes += 1;
    }
  })();
  const welcomed = await Promise.all(indexes.map((index) => next.join(name(index), {}, { token })));
  const probesMeanwhile = probes;
  done = true;
  await probing;
  expect(welcomed.filter(({ welcome }) => welcome.resumed)).toEqual([]);
  expect(next.server.stats()).toMatchObject({ ready: AGENTS + 1, suspended: 0 });
  expect(probesMeanwhile).toBeGreaterThan(0);
  const available = "SELECT count(*)::int FROM agents WHERE tenant_id = $1 AND mesh_id = $2 AND status = 'available'";
  expect(await database.value(available, [fixture.tenantId, next.meshId])).toBe(AGENTS + 1);

  // What was at work has failed by then; every session is where it was, with its agent.
  for (const [index, { ref }] of before.entries()) {
    const { state, error } = await fixture.message(ref);
    expect([index, state, error?.code]).toEqual(
      index < AT_WORK ? [index, 'failed', 'AGENT_DISCONNECTED'] : [index, 'completed', undefined],
    );
    const session = await sessionOf(ref.message_id);
    expect(session).toMatchObject({ status: 'active', instance_id: name(index) });
    const again = await fixture.open('after', {}, session?.session_id);
    const { agent } = welcomed[index] as (typeof welcomed)[number];
    const end = next.run(again);
    (await receive(agent, again)).result('still here');
    await end;
    expect((await fixture.message(again)).state).toBe('completed');
  }
  onTestFinished(() => {
    for (const { agent } of welcomed) agent.kill();
  });
}, 300_000);
