import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Db } from '../../db/pool.js';
import { DeadNodes } from '../../mesh/nodes/dead-nodes.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { atWork, cutOffFixture, database, finishes, fixture, ownWay, useMesh } from './use-mesh.js';

useMesh('a');

const nodes = () => database.column<string>('SELECT mesh_id FROM mesh_nodes');

/** The node's row, if it was renewed that many milliseconds after it was made. */
const RENEWED = `SELECT 1 FROM mesh_nodes WHERE mesh_id = $1 AND renewed_at > started_at + $2 * interval '1 ms'`;

/** An agent that a node which is no more had, as its crash leaves it. */
async function crashedNode(meshId: string): Promise<void> {
  await database.query("INSERT INTO mesh_nodes (mesh_id, renewed_at) VALUES ($1, now() - interval '16 s')", [meshId]);
  await fixture.setAgent('a', "status = 'available', mesh_id = $3, connection_epoch = 1", meshId);
}

/** Takes nodes for dead after 400 ms, as each process with the role mesh or worker does in its time. */
function watchNodes(db: Db = fixture.core.db): void {
  const { core, dispatches } = fixture;
  const deadNodes = new DeadNodes({ db, dispatches, log: core.log, clocks: { reconcileMs: 20, deadNodeMs: 400 } });
  deadNodes.start();
  onTestFinished(() => deadNodes.stop());
}

describe('a node', () => {
  it('is on the list while it lives and off it when it has closed', async () => {
    const node = await fixture.node();
    expect(await nodes()).toContain(node.meshId);
    await node.server.close();
    expect(await nodes()).not.toContain(node.meshId);
  });

  it('that starts while the database stands still is there as soon as it goes on', async () => {
    const lock = await RowLock.onTables(database.url, ['mesh_nodes']);
    const started = fixture.node();
    const isOver = vi.fn();
    void started.then(isOver, isOver);
    try {
      await until(async () => (await lock.waiters()) === 1, { what: 'the node waits' });
      await until(async () => (await lock.waiters()) === 0, { what: 'the node has given up waiting' });
      expect(isOver).not.toHaveBeenCalled();
    } finally {
      await lock.release();
    }
    const { meshId } = await started;
    expect(await nodes()).toContain(meshId);
  });

  it('that is dead loses its agents and what they had once the database has been steady, not when a process boots; the living are spared', async () => {
    await crashedNode('mesh_dead');
    const sent = await fixture.open();
    const undecided = await fixture.undecided('a');
    const living = await fixture.node({ clocks: { reconcileMs: 20 } });
    watchNodes();
    // The database may have been away, and the node may be about to renew.
    expect(await fixture.agent('a')).toMatchObject({ status: 'available', mesh_id: 'mesh_dead' });
    await until(async () => (await fixture.agent('a')).status === 'offline');
    expect(await nodes()).not.toContain('mesh_dead');
    expect(await nodes()).toContain(living.meshId);
    expect(await fixture.agent('a')).toMatchObject({ status: 'offline', mesh_id: null });
    expect((await fixture.message(sent)).error?.code).toBe('AGENT_DISCONNECTED');
    expect(await fixture.dispatches.find(undecided)).toBeNull();
    expect((await fixture.message(undecided)).state).toBe('submitted');
    expect(await fixture.events('agent.health_changed')).toEqual([
      { agent_type: 'worker', instance_id: 'a', status: 'offline', previous_status: 'available' },
    ]);
  });

  it('alone is waited for four times as long: nobody else could do its work', async () => {
    watchNodes();
    const [renewed] = await database.query<{ at: Date }>(
      "INSERT INTO mesh_nodes (mesh_id) VALUES ('mesh_lone') RETURNING renewed_at AS at",
    );
    await until(async () => !(await nodes()).includes('mesh_lone'));
    const [row] = await database.query("SELECT 1 WHERE now() >= $1::timestamptz + interval '1.6 s'", [renewed?.at]);
    expect(row).toBeDefined();
  });

  it('that was taken for dead comes back, and its agents resume with their work', async () => {
    const { node, agent, welcome, ref, end } = await atWork();
    await database.query('DELETE FROM mesh_nodes WHERE mesh_id = $1', [node.meshId]);
    await fixture.setAgent('a', "status = 'offline', mesh_id = NULL");
    expect((await agent.closed).code).toBe(1001);
    const back = await node.join('a', { resume_token: welcome.resume_token });
    expect(back.welcome.resumed).toBe(true);
    await finishes(back.agent, ref, end);
    expect(await nodes()).toContain(node.meshId);
  });

  it('writes down which of its agents live', async () => {
    const node = await fixture.node({ clocks: { lastSeenMs: 10, pingIntervalMs: 20 } });
    await node.join('a');
    await fixture.setAgent('a', "last_seen = now() - interval '1 h'");
    const isFresh = async () => ((await fixture.agent('a')).last_seen as Date).getTime() > Date.now() - 60_000;
    expect(await until(isFresh)).toBe(true);
  });
});

describe('a node that shuts down', () => {
  it('asks its agents to close, lets them finish, and takes them off the routes', async () => {
    const { node, agent, ref, end, dispatch } = await atWork();
    await fixture.register('idle');
    const { agent: idle } = await node.join('idle');
    const drained = node.server.drain(30_000);
    expect((await agent.nextOfType('close_request')).payload).toMatchObject({ grace_seconds: 30 });
    expect((await idle.closed).code).toBe(1000);
    dispatch.result('last words');
    await drained;
    expect(await end).toMatchObject({ kind: 'closed' });
    expect((await agent.closed).code).toBe(1000);
    expect((await fixture.message(ref)).assistant_output).toBe('last words');
    for (const instance of ['a', 'idle'])
      expect(await fixture.agent(instance)).toMatchObject({ status: 'offline', mesh_id: null });
  });

  it('alone takes back an agent whose socket broke, and nobody else', async () => {
    const { node, agent, welcome, ref, end, dispatch } = await atWork();
    await fixture.register('new');
    agent.kill();
    await until(() => node.server.stats().suspended === 1);
    const drained = node.server.drain(30_000);
    await expect(node.join('new')).rejects.toThrow('503');
    const inflight = [{ dispatch_id: ref.dispatch_id, last_seq: -1 }];
    const back = await node.join('a', { resume_token: welcome.resume_token, inflight });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [] });
    expect((await back.agent.nextOfType('close_request')).payload.grace_seconds).toBeLessThanOrEqual(30);
    back.agent.send('dispatch_result', { result: 'last words' }, dispatch.frame.id);
    await drained;
    expect(await end).toMatchObject({ kind: 'closed' });
    expect((await back.agent.closed).code).toBe(1000);
    expect((await fixture.message(ref)).assistant_output).toBe('last words');
  });

  it.each(['before the stop', 'during its grace'])(
    'closes its port; an agent whose socket broke %s goes on at another node at once',
    async (when) => {
      const { node, agent, welcome, ref, dispatch } = await atWork();
      const other = await fixture.node();
      const lose = async () => {
        agent.kill();
        await until(() => node.server.stats().suspended === 1);
      };
      if (when === 'before the stop') await lose();
      const drained = node.server.drain(30_000);
      if (when === 'during its grace') agent.kill();
      const refusal = () => node.socket('nobody').then(String, ({ message }: Error) => message);
      await until(async () => (await refusal()).includes('ECONNREFUSED'), { what: 'the port to close' });
      await until(() => node.server.stats().suspended === 0 && node.runner.running.size === 0, { what: 'the offer' });
      const inflight = [{ dispatch_id: ref.dispatch_id, last_seq: -1 }];
      const back = await other.join('a', { resume_token: welcome.resume_token, inflight });
      expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [] });
      back.agent.send('dispatch_result', { result: 'last words' }, dispatch.frame.id);
      await drained;
      await until(async () => (await fixture.message(ref)).assistant_output === 'last words', { what: 'the result' });
    },
  );

  it('fails what has not finished within the grace, the work of lost agents too', async () => {
    const { node, ref } = await atWork();
    await fixture.register('lost');
    const { agent: lost } = await node.join('lost');
    const gone = await node.send(lost);
    lost.kill();
    await until(() => node.server.stats().suspended === 1);
    const drained = node.server.drain(200);
    await gone.end;
    await drained;
    for (const each of [ref, gone.ref]) expect((await fixture.message(each)).error?.code).toBe('AGENT_DISCONNECTED');
  });
});

describe('when the database comes back', () => {
  it('a node that boots spares a node that could not renew, and its messages', async () => {
    const { path, db } = await ownWay();
    const { node, ref, end, dispatch } = await atWork({}, { db, clocks: { reconcileMs: 20 } });
    path.shut();
    // As after an outage of 16 s.
    await database.query("UPDATE mesh_nodes SET renewed_at = now() - interval '16 s' WHERE mesh_id = $1", [
      node.meshId,
    ]);
    const booted = await fixture.node();
    expect(await fixture.agent('a')).toMatchObject({ status: 'available', mesh_id: node.meshId });
    path.isShut = false;
    const isBack = `SELECT 1 FROM mesh_nodes WHERE mesh_id = $1 AND renewed_at > now() - interval '10 s'`;
    await until(async () => (await database.query(isBack, [node.meshId])).length > 0);
    dispatch.result('hi');
    expect(await end).toMatchObject({ kind: 'closed' });
    expect((await fixture.message(ref)).state).toBe('completed');
    expect(await nodes()).toEqual(expect.arrayContaining([node.meshId, booted.meshId]));
    expect(await fixture.events('agent.health_changed')).toHaveLength(1);
  });

  it('after it stood still, the first process that looks does not take the others for dead', async () => {
    const { path, db } = await ownWay();
    const node = await fixture.node({ db, clocks: { reconcileMs: 20 } });
    watchNodes(db);
    // Its renewals do not fail, and take longer than half of what another may be silent.
    path.latencyMs = 200;
    await until(async () => (await database.query(RENEWED, [node.meshId, 700])).length > 0);
    await crashedNode('mesh_slow');
    await until(async () => (await database.query(RENEWED, [node.meshId, 2_000])).length > 0);
    expect(await nodes()).toContain('mesh_slow');
    path.latencyMs = 0;
    await until(async () => !(await nodes()).includes('mesh_slow'));
  });
});

describe('while the database is away', () => {
  it('sockets stay, a result is kept, and everything goes on afterwards', async () => {
    const { path, cutOff } = await cutOffFixture();
    const node = await cutOff.node({ clocks: { pingIntervalMs: 50 } });
    const { agent } = await node.join('a');
    const { ref, end, dispatch } = await node.send(agent);
    path.shut();
    dispatch.chunk(0, 'hi');
    dispatch.result('');
    agent.send('heartbeat', { max_concurrent_sessions: 5 });
    agent.send('dispatch_result', { result: 'x' }, dispatch.frame.id);
    const pings = agent.count('ping');
    await until(() => agent.count('ping') > pings + 6);
    expect(agent.isOpen).toBe(true);
    const [row] = await database.query('SELECT state FROM messages WHERE message_id = $1', [ref.message_id]);
    expect(row).toEqual({ state: 'working' });
    path.isShut = false;
    expect(await end).toMatchObject({ kind: 'closed' });
    expect(await cutOff.message(ref)).toMatchObject({ state: 'completed', assistant_output: 'hi' });
    const later = await node.send(agent);
    later.dispatch.result('too');
    expect(await later.end).toMatchObject({ kind: 'closed', final: 'completed' });
    await until(async () => (await cutOff.agent('a')).max_concurrent_sessions === 5);
    expect(await cutOff.agent('a')).toMatchObject({ status: 'available', mesh_id: node.meshId });
    expect(agent.isOpen).toBe(true);
  });

  it('an agent that left is off the routes as soon as that can be written', async () => {
    const { path, cutOff } = await cutOffFixture();
    const node = await cutOff.node();
    const { agent } = await node.join('a');
    path.shut();
    agent.kill();
    await until(() => node.server.stats().suspended === 1);
    path.isShut = false;
    expect(await until(async () => (await cutOff.agent('a')).status === 'offline')).toBe(true);
  });
});
