import type { QueryResultRow } from 'pg';
import { beforeEach, describe, expect, it, test } from 'vitest';
import type { Db } from '../../db/pool.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import type { BusItem } from '../../messages/stream/bus.js';
import { dispatched } from '../setup/agent.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';
import { errorOf, receive } from './fixture-agent.js';
import type { MeshNodeUnderTest, NodeOptions } from './mesh-fixture.js';
import { atWork, database, fixture, useMesh } from './use-mesh.js';

useMesh('a');

let second: MeshNodeUnderTest;
beforeEach(async () => {
  second = await fixture.node();
});

/** Stops a node as SIGTERM does, with a short grace. */
const stop = (node: MeshNodeUnderTest, graceMs = 100) =>
  Promise.all([node.server.drain(graceMs), node.runner.drain(graceMs)]);

/** A dispatch whose agent has it and has sent these chunks of it. */
async function begun(chunks: string[] = [], metadata: Record<string, unknown> = {}, options: NodeOptions = {}) {
  const { node: first, ...sent } = await atWork(metadata, options);
  for (const [seq, chunk] of chunks.entries()) sent.dispatch.chunk(seq, chunk);
  const inflight = [{ dispatch_id: sent.ref.dispatch_id, last_seq: chunks.length - 1 }];
  const hello = { resume_token: sent.welcome.resume_token, inflight };
  return { first, ...sent, hello };
}

/** The same, and its node has stopped. */
async function offered(...given: Parameters<typeof begun>) {
  const made = await begun(...given);
  await stop(made.first);
  return made;
}

const offers = () =>
  database.query('SELECT dispatch_id FROM dispatch_transfers WHERE tenant_id = $1', [fixture.tenantId]);
/** Keeps a message from ending. */
const lockOn = (ref: DispatchRef) =>
  RowLock.on(database.url, 'SELECT 1 FROM running_messages WHERE message_id = $1', [ref.message_id]);
const rowOf = async (ref: DispatchRef) => {
  const row = 'SELECT state, mesh_id, epoch FROM dispatches WHERE dispatch_id = $1';
  return (await database.query(row, [ref.dispatch_id]))[0];
};
const textOf = (seen: BusItem['event'][]) =>
  seen
    .flatMap((event) => (event.kind === 'artifact' ? event.artifact.parts : []))
    .map((part) => 'text' in part && part.text)
    .join('');
const answered = async (ref: DispatchRef, text: string) =>
  expect(await until(async () => (await fixture.message(ref)).assistant_output === text, { what: text })).toBe(true);

describe('a dispatch that outlasts the grace of its node', () => {
  it('goes on at another node, where its agent resumes: no chunk is lost or doubled', async () => {
    const { first, agent, ref, end, dispatch, hello } = await begun(['one ', 'two ']);
    const seen = fixture.watch(ref);
    await until(() => seen.filter(({ kind }) => kind === 'artifact').length === 2);
    await stop(first);
    expect((await agent.closed).code).toBe(1001);
    expect(await end).toEqual({ kind: 'closed' });
    expect(await rowOf(ref)).toMatchObject({ state: 'sent', mesh_id: first.meshId });

    const back = await second.join('a', hello);
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [], mesh_id: second.meshId });
    expect(await rowOf(ref)).toMatchObject({ state: 'sent', mesh_id: second.meshId, epoch: 2 });
    await until(async () => (await offers()).length === 0, { what: 'no offer' });
    const again = dispatched(back.agent, dispatch.frame);
    again.chunk(1, 'two ');
    again.chunk(2, 'three');
    again.result('', { chunk_count: 3 });
    await answered(ref, 'one two three');
    expect((await fixture.message(ref)).state).toBe('completed');
    // Where the guards of the tenant have to be read anew, the rest comes with the whole answer only.
    expect('one two three'.startsWith(textOf(seen))).toBe(true);
    expect(back.agent.count('dispatch')).toBe(0);
    expect(await fixture.events('dispatch.success')).toHaveLength(1);
  });

  it('is sent again by the other node when the agent does not have it', async () => {
    const { ref, dispatch, hello } = await offered();
    const back = await second.join('a', { ...hello, inflight: [] });
    expect(back.welcome.replayed_dispatches).toEqual([ref.dispatch_id]);
    const again = await receive(back.agent, ref);
    expect(again.payload.attempt).toBe(dispatch.payload.attempt + 1);
    expect(again.payload.deadline_ms).toBeLessThan(dispatch.payload.deadline_ms);
    again.result('found');
    await answered(ref, 'found');
  });

  it('goes on when its agent had no socket at the end of the grace', async () => {
    const { first, agent, ref, dispatch, hello } = await begun();
    agent.kill();
    await until(() => first.server.stats().suspended === 1);
    await stop(first);
    const back = await second.join('a', hello);
    dispatched(back.agent, dispatch.frame).result('done');
    await answered(ref, 'done');
  });

  it('fails at its deadline on the other node', async () => {
    const { ref, hello } = await offered([], { deadline_ms: 1_500 });
    const back = await second.join('a', hello);
    await errorOf(back.agent, 'DEADLINE_EXCEEDED');
    expect(await until(async () => (await fixture.message(ref)).error?.code === 'DEADLINE_EXCEEDED')).toBe(true);
  });

  it('that was canceled meanwhile is not taken, and the agent hears of it', async () => {
    const { ref, dispatch, hello } = await offered();
    await fixture.cancel(ref);
    const back = await second.join('a', hello);
    expect(back.welcome.resumed).toBe(false);
    dispatched(back.agent, dispatch.frame).result('late');
    await errorOf(back.agent, 'DISPATCH_ALREADY_TERMINAL');
    expect((await fixture.message(ref)).state).toBe('canceled');
  });

  it('moves on once more when the next node stops too, and keeps a character that was cut in two', async () => {
    const third = await fixture.node();
    const [high, low] = ['\ud83d', '\ude00'];
    const { ref, dispatch, hello } = await offered([high]);
    const next = await second.join('a', hello);
    dispatched(next.agent, dispatch.frame).chunk(1, `${low} two `);
    await stop(second);
    const inflight = [{ dispatch_id: ref.dispatch_id, last_seq: 1 }];
    const { agent: last } = await third.join('a', { resume_token: next.welcome.resume_token, inflight });
    const again = dispatched(last, dispatch.frame);
    again.chunk(2, 'three');
    again.result('', { chunk_count: 3 });
    await answered(ref, '😀 two three');
  });
});

test('a dispatch that its next node accepts while its first one is taken for dead goes on', async () => {
  const { first, ref, dispatch, hello } = await offered();
  await first.server.close();
  const { db } = fixture.core;
  let back: Awaited<ReturnType<typeof second.join>> | undefined;
  const accepted: typeof db.tenant = async (tenantId, work) => {
    back = await second.join('a', hello);
    return db.tenant(tenantId, work);
  };
  // Between its look at the owner and the one at the offers.
  const asking = createDispatches({ ...fixture.core, db: { ...db, tenant: accepted } });
  expect(await asking.failAsLost(ref, { mesh_id: first.meshId, unlessOffered: true })).toBeNull();
  if (!back) throw new Error('the agent did not come back');
  dispatched(back.agent, dispatch.frame).result('done');
  await answered(ref, 'done');
});

test('a dispatch whose agent loses its socket before its welcome is offered again, to any node', async () => {
  const third = await fixture.node();
  await fixture.register('b');
  const { first, ref, dispatch, hello } = await begun(['one ']);
  const other = await fixture.undecided('a');
  await stop(first);
  // The next node has claimed the dispatch and waits until it may release the one that was not sent.
  const lock = await lockOn(other);
  const lost = await second.socket('a');
  lost.send('hello', { instance_id: 'a', ...hello });
  await until(async () => (await rowOf(ref))?.mesh_id === second.meshId, { what: 'the claim' });
  lost.kill();
  await second.join('b'); // by then the node has noticed
  await lock.release();
  await until(async () => (await rowOf(ref))?.mesh_id === first.meshId, { what: 'the offer' });
  expect((await fixture.message(ref)).state).toBe('working');

  const back = await third.join('a', hello);
  expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [] });
  const again = dispatched(back.agent, dispatch.frame);
  again.chunk(1, 'two');
  again.result('', { chunk_count: 2 });
  await answered(ref, 'one two');
  expect(await fixture.events('dispatch.failed')).toEqual([]);
});

test('an offer that is written after the node has given up does not fail what goes on elsewhere', async () => {
  const { first, ref, dispatch, hello } = await begun([], {}, { clocks: { transferMs: 200 } });
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
  const back = await second.join('a', hello);
  expect(back.welcome.resumed).toBe(true);
  await ends.release();
  await stopped;
  await database.query('DROP TRIGGER wait ON dispatch_transfers');
  dispatched(back.agent, dispatch.frame).result('done');
  await answered(ref, 'done');
  expect(await fixture.events('dispatch.failed')).toEqual([]);
});

test('the dispatches of an agent that has many are read in portions', async () => {
  const first = await fixture.node();
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
          ...tx,
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

test('two nodes that get the same token continue the dispatch once', async () => {
  const third = await fixture.node();
  const { hello } = await offered();
  const both = await Promise.all([second, third].map((node) => node.join('a', hello)));
  expect(both.filter((joined) => joined.welcome.resumed)).toHaveLength(1);
  await until(async () => (await offers()).length === 0, { what: 'no offer' });
});

describe('it fails with AGENT_DISCONNECTED, once,', () => {
  const isLost = async (ref: DispatchRef) => (await fixture.message(ref)).error?.code === 'AGENT_DISCONNECTED';

  it.each([
    ['no token', undefined],
    ['another token', 'AAAA'],
  ])('when the agent comes to the other node with %s', async (_what, resume_token) => {
    const { ref, dispatch, hello } = await offered();
    const back = await second.join('a', { ...hello, resume_token });
    expect(back.welcome.resumed).toBe(false);
    expect(await isLost(ref)).toBe(true);
    dispatched(back.agent, dispatch.frame).result('late');
    await errorOf(back.agent, 'DISPATCH_ALREADY_TERMINAL');
    expect(await fixture.events('dispatch.failed')).toHaveLength(1);
  });

  it('when the other node accepts it and then cannot open the connection', async () => {
    const { first, ref, hello } = await begun();
    await fixture.undecided('a');
    await stop(first);
    await database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
    );
    await database.query(`CREATE TRIGGER refuse BEFORE UPDATE ON dispatches FOR EACH ROW WHEN (NEW.state = 'released')
      EXECUTE FUNCTION refuse()`);
    const back = await second.socket('a');
    back.send('hello', { instance_id: 'a', ...hello });
    await errorOf(back, 'INTERNAL');
    await database.query('DROP TRIGGER refuse ON dispatches');
    expect(await rowOf(ref)).toMatchObject({ state: 'sent', mesh_id: second.meshId });
    await until(() => isLost(ref), { what: 'the loss' });
  });

  it('when the other node stops as well', async () => {
    await stop(second, 0);
    const { agent, ref } = await offered();
    expect(await isLost(ref)).toBe(true);
    expect((await agent.closed).code).toBe(1000);
    expect(await offers()).toEqual([]);
  });

  it('when nobody accepts it within the resume window; until then it is left alone', async () => {
    const { first, ref } = await offered([], {}, { environment: { RESUME_WINDOW_MS: '1500' } });
    await first.server.close();
    const asked = () => fixture.dispatches.failAsLost(ref, { mesh_id: first.meshId, unlessOffered: true });
    expect(await asked()).toBeNull();
    expect((await fixture.message(ref)).state).toBe('working');
    await until(async () => (await asked()) !== null);
    expect(await isLost(ref)).toBe(true);
  });
});
