import type { QueryResultRow } from 'pg';
import { beforeEach, describe, expect, it, test } from 'vitest';
import type { Db } from '../../db/pool.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import { dispatched } from '../setup/agent.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { errorOf, receive } from './fixture-agent.js';
import type { MeshNodeUnderTest } from './mesh-fixture.js';
import { database, fixture, useMesh } from './use-mesh.js';

useMesh('a');

let first: MeshNodeUnderTest;
let second: MeshNodeUnderTest;
beforeEach(async () => {
  first = await fixture.node();
  second = await fixture.node();
});

/** Stops a node as SIGTERM does, with a short grace. */
const stop = (node: MeshNodeUnderTest, graceMs = 100) =>
  Promise.all([node.server.drain(graceMs), node.runner.drain(graceMs)]);
const holding = (ref: DispatchRef, lastSeq = -1) => ({
  inflight: [{ dispatch_id: ref.dispatch_id, last_seq: lastSeq }],
});
const offers = () =>
  database.query('SELECT dispatch_id FROM dispatch_transfers WHERE tenant_id = $1', [fixture.tenantId]);
/** Keeps a message from ending. */
const lockOn = (ref: DispatchRef) =>
  RowLock.on(database.url, 'SELECT 1 FROM running_messages WHERE message_id = $1', [ref.message_id]);
const rowOf = async (ref: DispatchRef) => {
  const [row] = await database.query('SELECT state, mesh_id, epoch FROM dispatches WHERE dispatch_id = $1', [
    ref.dispatch_id,
  ]);
  return row;
};

describe('a dispatch that outlasts the grace of its node', () => {
  it('goes on at another node, where its agent resumes: no chunk is lost or doubled', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref, end, dispatch } = await first.send(agent);
    const seen = fixture.watch(ref);
    dispatch.chunk(0, 'one ');
    dispatch.chunk(1, 'two ');
    await until(() => seen.filter(({ kind }) => kind === 'artifact').length === 2);
    await stop(first);
    expect((await agent.closed).code).toBe(1001);
    expect(await end).toEqual({ kind: 'closed' });
    expect(await rowOf(ref)).toMatchObject({ state: 'sent', mesh_id: first.meshId });

    const back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref, 1) });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [], mesh_id: second.meshId });
    expect(await rowOf(ref)).toMatchObject({ state: 'sent', mesh_id: second.meshId, epoch: 2 });
    await until(async () => (await offers()).length === 0, { what: 'no offer' });
    const followed = second.run(ref);
    const again = dispatched(back.agent, dispatch.frame);
    again.chunk(1, 'two ');
    again.chunk(2, 'three');
    again.result('', { chunk_count: 3 });
    expect(await followed).toMatchObject({ kind: 'closed', final: 'completed' });
    expect(await fixture.message(ref)).toMatchObject({ state: 'completed', assistant_output: 'one two three' });
    expect(seen.filter(({ kind }) => kind === 'artifact')).toHaveLength(3);
    expect(back.agent.count('dispatch')).toBe(0);
    expect(await fixture.events('dispatch.success')).toHaveLength(1);
  });

  it('is sent again by the other node when the agent does not have it', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref, dispatch } = await first.send(agent);
    await stop(first);
    const back = await second.join('a', { resume_token: welcome.resume_token });
    expect(back.welcome.replayed_dispatches).toEqual([ref.dispatch_id]);
    const again = await receive(back.agent, ref);
    expect(again.payload.attempt).toBe(dispatch.payload.attempt + 1);
    expect(again.payload.deadline_ms).toBeLessThan(dispatch.payload.deadline_ms);
    again.result('found');
    expect(await until(async () => (await fixture.message(ref)).state === 'completed')).toBe(true);
  });

  it('goes on when its agent had no socket at the end of the grace', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref, dispatch } = await first.send(agent);
    agent.kill();
    await until(() => first.server.stats().suspended === 1);
    await stop(first);
    const back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref) });
    dispatched(back.agent, dispatch.frame).result('done');
    expect(await until(async () => (await fixture.message(ref)).assistant_output === 'done')).toBe(true);
  });

  it('keeps a character that was cut in two', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref, dispatch } = await first.send(agent);
    const [high, low] = ['\ud83d', '\ude00'];
    dispatch.chunk(0, high);
    await stop(first);
    const back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref, 0) });
    const again = dispatched(back.agent, dispatch.frame);
    again.chunk(1, low);
    again.result('');
    expect(await until(async () => (await fixture.message(ref)).assistant_output === '😀')).toBe(true);
  });

  it('fails at its deadline on the other node', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref } = await first.send(agent, 'hello', { deadline_ms: 1_500 });
    await stop(first);
    const back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref) });
    await errorOf(back.agent, 'DEADLINE_EXCEEDED');
    expect(await until(async () => (await fixture.message(ref)).error?.code === 'DEADLINE_EXCEEDED')).toBe(true);
  });

  it('that was canceled meanwhile is not taken, and the agent hears of it', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref, dispatch } = await first.send(agent);
    await stop(first);
    await fixture.cancel(ref);
    const back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref) });
    expect(back.welcome.resumed).toBe(false);
    dispatched(back.agent, dispatch.frame).result('late');
    await errorOf(back.agent, 'DISPATCH_ALREADY_TERMINAL');
    expect((await fixture.message(ref)).state).toBe('canceled');
  });

  it('moves on once more when the next node stops too', async () => {
    const third = await fixture.node();
    const { agent, welcome } = await first.join('a');
    const { ref, dispatch } = await first.send(agent);
    dispatch.chunk(0, 'one ');
    await stop(first);
    const next = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref, 0) });
    dispatched(next.agent, dispatch.frame).chunk(1, 'two ');
    await stop(second);
    const { agent: last } = await third.join('a', { resume_token: next.welcome.resume_token, ...holding(ref, 1) });
    const again = dispatched(last, dispatch.frame);
    again.chunk(2, 'three');
    again.result('', { chunk_count: 3 });
    expect(await until(async () => (await fixture.message(ref)).assistant_output === 'one two three')).toBe(true);
  });
});

test('a dispatch that its next node accepts while its workflow asks for it goes on', async () => {
  const { agent, welcome } = await first.join('a');
  const { ref, dispatch } = await first.send(agent);
  await stop(first);
  await first.server.close();
  const { db } = fixture.core;
  let back: Awaited<ReturnType<typeof second.join>> | undefined;
  const accepted: typeof db.tenant = async (tenantId, work) => {
    back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref) });
    return db.tenant(tenantId, work);
  };
  // Between its look at the owner and the one at the offers.
  const asking = createDispatches({ ...fixture.core, db: { ...db, tenant: accepted } });
  expect(await asking.failAsLost(ref, 'AGENT_DISCONNECTED', { unlessOwnerLives: true })).toBeNull();
  if (!back) throw new Error('the agent did not come back');
  dispatched(back.agent, dispatch.frame).result('done');
  expect(await until(async () => (await fixture.message(ref)).assistant_output === 'done')).toBe(true);
});

test('a dispatch whose agent loses its socket before its welcome is offered again, to any node', async () => {
  const third = await fixture.node();
  await fixture.register('b');
  const { agent, welcome } = await first.join('a');
  const { ref, dispatch } = await first.send(agent);
  dispatch.chunk(0, 'one ');
  const other = await fixture.open('not sent yet');
  await stop(first);
  const hello = { instance_id: 'a', resume_token: welcome.resume_token, ...holding(ref, 0) };
  // The next node has claimed the dispatch and waits until it may release the one that was not sent.
  const lock = await lockOn(other);
  const lost = await second.socket('a');
  lost.send('hello', hello);
  await until(async () => (await rowOf(ref))?.mesh_id === second.meshId, { what: 'the claim' });
  lost.kill();
  await second.join('b'); // by then the node has noticed
  await lock.release();
  await until(async () => (await rowOf(ref))?.mesh_id === first.meshId, { what: 'the offer' });
  expect(await second.run(ref)).toMatchObject({ kind: 'closed' }); // as a workflow that asks for it
  expect((await fixture.message(ref)).state).toBe('working');

  const back = await third.join('a', hello);
  expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [] });
  const again = dispatched(back.agent, dispatch.frame);
  again.chunk(1, 'two');
  again.result('', { chunk_count: 2 });
  expect(await until(async () => (await fixture.message(ref)).assistant_output === 'one two')).toBe(true);
  expect(await fixture.events('dispatch.failed')).toEqual([]);
});

test('an offer that is written after the node has given up does not fail what goes on elsewhere', async () => {
  const first = await fixture.node({ clocks: { transferMs: 200 } });
  const { agent, welcome } = await first.join('a');
  const { ref, dispatch } = await first.send(agent);
  const offering = await RowLock.on(database.url, 'SELECT 1 FROM dispatches WHERE dispatch_id = $1', [ref.dispatch_id]);
  const ends = await lockOn(ref);
  // As long as this, the offer waits for a lock of the test, and the end that the node then records too.
  await database.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM 1 FROM dispatches WHERE dispatch_id = NEW.dispatch_id FOR SHARE; RETURN NEW; END $$`);
  await database.query('CREATE TRIGGER wait BEFORE INSERT ON dispatch_transfers FOR EACH ROW EXECUTE FUNCTION wait()');
  const stopped = stop(first);
  await until(() => ends.waiters().then((count) => count > 0), { what: 'the end that waits' });
  await offering.release();
  await until(async () => (await offers()).length === 1, { what: 'the late offer' });
  const back = await second.join('a', { resume_token: welcome.resume_token, ...holding(ref) });
  expect(back.welcome.resumed).toBe(true);
  await ends.release();
  await stopped;
  await database.query('DROP TRIGGER wait ON dispatch_transfers');
  dispatched(back.agent, dispatch.frame).result('done');
  expect(await until(async () => (await fixture.message(ref)).assistant_output === 'done')).toBe(true);
  expect(await fixture.events('dispatch.failed')).toEqual([]);
});

test('the dispatches of an agent that has many are read in portions', async () => {
  const { agent, welcome } = await first.join('a');
  const sent = await Promise.all(Array.from({ length: 40 }, (_, nth) => first.send(agent, `message ${nth}`)));
  await stop(first);
  const read: number[] = [];
  const { db } = fixture.core;
  const counting: Db = {
    ...db,
    tenant: (tenantId, work) =>
      db.tenant(tenantId, (tx) =>
        work({
          query: async <Row extends QueryResultRow>(text: string, values?: unknown[], name?: string) => {
            const rows = await tx.query<Row>(text, values, name);
            if (rows.some((row) => 'progress' in row)) read.push(rows.length);
            return rows;
          },
        }),
      ),
  };
  const next = await fixture.node({ db: counting });
  const back = await next.join('a', { resume_token: welcome.resume_token });
  expect(back.welcome.replayed_dispatches).toHaveLength(40);
  expect(read.reduce((sum, rows) => sum + rows, 0)).toBe(40);
  expect(Math.max(...read)).toBeLessThanOrEqual(16);
  for (const { ref } of sent) (await receive(back.agent, ref)).result('done');
  await until(async () => (await fixture.events('dispatch.success')).length === 40, { what: 'all results' });
});

describe('it fails with AGENT_DISCONNECTED, once,', () => {
  const isLost = async (ref: DispatchRef) => (await fixture.message(ref)).error?.code === 'AGENT_DISCONNECTED';

  it.each([
    ['no token', {}],
    ['another token', { resume_token: 'AAAA' }],
  ])('when the agent comes to the other node with %s', async (_what, hello) => {
    const { agent } = await first.join('a');
    const { ref, dispatch } = await first.send(agent);
    await stop(first);
    const back = await second.join('a', { ...hello, ...holding(ref) });
    expect(back.welcome.resumed).toBe(false);
    expect(await isLost(ref)).toBe(true);
    dispatched(back.agent, dispatch.frame).result('late');
    await errorOf(back.agent, 'DISPATCH_ALREADY_TERMINAL');
    expect(await fixture.events('dispatch.failed')).toHaveLength(1);
  });

  it('when the other node accepts it and then cannot open the connection', async () => {
    const { agent, welcome } = await first.join('a');
    const { ref } = await first.send(agent);
    await fixture.open('not sent yet');
    await stop(first);
    await database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
    );
    await database.query(`CREATE TRIGGER refuse BEFORE UPDATE ON dispatches FOR EACH ROW WHEN (NEW.state = 'released')
      EXECUTE FUNCTION refuse()`);
    const back = await second.socket('a');
    back.send('hello', { instance_id: 'a', resume_token: welcome.resume_token, ...holding(ref) });
    await errorOf(back, 'INTERNAL');
    await database.query('DROP TRIGGER refuse ON dispatches');
    expect(await rowOf(ref)).toMatchObject({ state: 'sent', mesh_id: second.meshId });
    expect(await second.run(ref)).toMatchObject({ kind: 'closed' });
    expect(await isLost(ref)).toBe(true);
  });

  it('when the other node stops as well', async () => {
    await stop(second, 0);
    const { agent } = await first.join('a');
    const { ref } = await first.send(agent);
    await stop(first);
    expect(await isLost(ref)).toBe(true);
    expect((await agent.closed).code).toBe(1000);
    expect(await offers()).toEqual([]);
  });

  it('when nobody accepts it within the resume window; until then its workflow leaves it', async () => {
    const brief = await fixture.node({ environment: { RESUME_WINDOW_MS: '1500' } });
    const { agent } = await brief.join('a');
    const { ref } = await brief.send(agent);
    await stop(brief);
    await brief.server.close();
    const asked = () => fixture.dispatches.failAsLost(ref, 'AGENT_DISCONNECTED', { unlessOwnerLives: true });
    expect(await asked()).toBeNull();
    expect((await fixture.message(ref)).state).toBe('working');
    await until(async () => (await asked()) !== null);
    expect(await isLost(ref)).toBe(true);
  });
});

describe('two nodes that get the same token', () => {
  it('continue the dispatch once', async () => {
    const third = await fixture.node();
    const { agent, welcome } = await first.join('a');
    const { ref } = await first.send(agent);
    await stop(first);
    const hello = { resume_token: welcome.resume_token, ...holding(ref) };
    const both = await Promise.all([second, third].map((node) => node.join('a', hello)));
    expect(both.filter((joined) => joined.welcome.resumed)).toHaveLength(1);
    await until(async () => (await offers()).length === 0, { what: 'no offer' });
  });
});
