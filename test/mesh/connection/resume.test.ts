import { describe, expect, it } from 'vitest';
import { dispatched } from '../../setup/agent.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';
import { errorOf, receive } from '../fixture-agent.js';
import { atWork, database, finishes, fixture, joined, useMesh } from '../use-mesh.js';

useMesh('a');

const closed = { kind: 'closed' };

describe('an agent that lost its socket', () => {
  it('resumes with its token: what it holds goes on, the rest is sent again', async () => {
    const { node, agent, welcome } = await joined();
    const held = await node.send(agent, 'held');
    const lost = await node.send(agent, 'lost');
    held.dispatch.chunk(0, 'one ');
    held.dispatch.chunk(1, 'two ');
    const seen = fixture.watch(held.ref);
    await until(() => seen.filter((event) => event.kind === 'artifact').length === 2);
    agent.kill();
    const back = await node.join('a', {
      resume_token: welcome.resume_token,
      inflight: [{ dispatch_id: held.ref.dispatch_id, last_seq: 1 }],
    });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [lost.ref.dispatch_id] });
    expect(back.welcome.resume_token).not.toBe(welcome.resume_token);
    const again = await receive(back.agent, lost.ref);
    expect(again.payload).toMatchObject({ attempt: 2, idempotency_key: lost.dispatch.payload.idempotency_key });
    expect(again.payload.deadline_ms).toBeLessThan(lost.dispatch.payload.deadline_ms);
    again.result('found');
    back.agent.send('dispatch_chunk', { seq: 1, parts: [{ kind: 'text', text: 'two ' }] }, held.dispatch.frame.id);
    back.agent.send('dispatch_chunk', { seq: 2, parts: [{ kind: 'text', text: 'three' }] }, held.dispatch.frame.id);
    back.agent.send('dispatch_result', { result: '', chunk_count: 3 }, held.dispatch.frame.id);
    expect(await Promise.all([held.end, lost.end])).toMatchObject([closed, closed]);
    expect((await fixture.message(held.ref)).assistant_output).toBe('one two three');
    expect((await fixture.message(lost.ref)).assistant_output).toBe('found');
    expect(back.agent.count('dispatch')).toBe(1);
    expect(await fixture.agent('a')).toMatchObject({ status: 'available', mesh_id: node.meshId });
  });

  it('gets what is sent again before new work', async () => {
    const { node, agent, welcome } = await joined();
    const lost = await node.send(agent, 'lost');
    const fresh = await fixture.open('fresh');
    agent.kill();
    await until(() => node.server.stats().suspended === 1);
    const untilSent = async () => {
      for (;;) {
        const end = await node.run(fresh);
        if (end.kind !== 'not_sent') return end;
      }
    };
    untilSent().catch(() => undefined); // ends with the test
    const { agent: again } = await node.join('a', { resume_token: welcome.resume_token });
    await receive(again, fresh);
    const work = again.received.filter(({ type }) => type !== 'ping').map(({ payload }) => payload.dispatch_id);
    expect(work).toEqual([undefined, lost.ref.dispatch_id, fresh.dispatch_id]);
  });

  it('sends again the chunks that were on their way; a result without them does not count', async () => {
    const node = await fixture.node();
    for (const complete of [true, false]) {
      const { agent, welcome } = await node.join('a');
      const { ref, end, dispatch } = await node.send(agent);
      agent.kill();
      const { dispatch_id } = ref;
      const inflight = [{ dispatch_id, last_seq: 1 }];
      const { agent: back } = await node.join('a', { resume_token: welcome.resume_token, inflight });
      const again = dispatched(back, dispatch.frame);
      again.chunk(0, 'one ');
      if (complete) again.chunk(1, 'two');
      again.result('');
      await end;
      const { state, error, assistant_output } = await fixture.message(ref);
      if (complete) expect([state, assistant_output]).toEqual(['completed', 'one two']);
      else expect([state, error?.code]).toEqual(['failed', 'CHUNK_SEQ_GAP']);
    }
  });

  it('resumes while its old socket still looks alive', async () => {
    const { node, agent, welcome, ref, end } = await atWork();
    const back = await node.join('a', { resume_token: welcome.resume_token });
    expect((await agent.closed).code).toBe(4409);
    expect(back.welcome.resumed).toBe(true);
    await finishes(back.agent, ref, end);
    expect((await fixture.events('agent.health_changed')).length).toBe(1);
  });

  it('hears how what it holds ended meanwhile', async () => {
    const { node, agent, welcome } = await joined({ clocks: { reconcileMs: 20 } });
    const canceled = await node.send(agent);
    const late = await node.send(agent, 'late', { deadline_ms: 300 });
    agent.kill();
    await fixture.cancel(canceled.ref);
    await Promise.all([canceled.end, late.end]);
    const inflight = [canceled.ref, late.ref, { dispatch_id: 'dsp_nonsense' }].map(({ dispatch_id }) => ({
      dispatch_id,
      last_seq: -1,
    }));
    const back = await node.join('a', { resume_token: welcome.resume_token, inflight });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [] });
    expect((await errorOf(back.agent, 'CANCELED')).in_reply_to).toBe(canceled.dispatch.frame.id);
    expect((await errorOf(back.agent, 'DISPATCH_ALREADY_TERMINAL')).in_reply_to).toBe(late.dispatch.frame.id);
    await errorOf(back.agent, 'UNKNOWN_DISPATCH');
  });

  it('starts clean without a token, with a wrong one, or with one that served: its work has failed by then', async () => {
    const node = await fixture.node();
    let { agent, welcome } = await node.join('a');
    const used = welcome.resume_token;
    agent.kill();
    ({ agent, welcome } = await node.join('a', { resume_token: used }));
    expect(welcome.resumed).toBe(true);
    for (const token of [undefined, 'wrong', used]) {
      const { ref, end } = await node.send(agent);
      agent.kill();
      ({ agent, welcome } = await node.join('a', { resume_token: token }));
      expect(welcome).toMatchObject({ resumed: false, replayed_dispatches: [] });
      const [row] = await database.query('SELECT state, error_code FROM messages WHERE message_id = $1', [
        ref.message_id,
      ]);
      expect(row).toEqual({ state: 'failed', error_code: 'AGENT_DISCONNECTED' });
      expect(await end).toMatchObject(closed);
    }
  });

  it('resumes with its token once more when it has not heard of the next one, and no longer when it has', async () => {
    const { node, agent, welcome } = await joined();
    const { resume_token } = welcome;
    const { ref, end } = await node.send(agent);
    agent.kill();
    for (let lost = 0; lost < 3; lost += 1) {
      // The welcome goes out, and dies with the socket: the agent says nothing that shows that it came.
      const { agent: deaf, welcome: unread } = await node.join('a', { resume_token });
      expect(unread.resumed).toBe(true);
      deaf.kill();
      await until(() => node.server.stats().suspended === 1);
    }
    const back = await node.join('a', { resume_token });
    expect(back.welcome.resumed).toBe(true);
    await finishes(back.agent, ref, end);
    back.agent.kill();
    expect((await node.join('a', { resume_token })).welcome.resumed).toBe(false);
  });

  it('resumes although the socket that it came back with was lost before its welcome', async () => {
    const node = await fixture.node();
    await fixture.register('b');
    const { agent: other } = await node.join('b');
    const { agent, welcome } = await node.join('a');
    const { resume_token } = welcome;
    const { ref, end } = await node.send(agent);
    agent.kill();
    await until(async () => (await fixture.agent('a')).status === 'offline');
    const lock = await RowLock.on(database.url, 'SELECT 1 FROM agents WHERE tenant_id = $1 AND instance_id = $2', [
      fixture.tenantId,
      'a',
    ]);
    const lost = await node.socket('a');
    lost.send('hello', { instance_id: 'a', resume_token });
    await until(async () => (await lock.waiters()) === 1);
    lost.kill();
    for (let round = 0; round < 10; round += 1) {
      other.send('ping', {});
      await other.nextOfType('pong'); // by then the node has seen the end of that socket
    }
    await lock.release();
    await until(async () => (await fixture.agent('a')).connection_epoch === 2);
    await until(async () => (await fixture.agent('a')).mesh_id === null);
    const back = await node.join('a', { resume_token });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [ref.dispatch_id] });
    await finishes(back.agent, ref, end);
  });

  it('starts clean on another node, and the first node lets go', async () => {
    const [here, there] = [await fixture.node(), await fixture.node()];
    const { agent, welcome } = await here.join('a');
    const { ref, end } = await here.send(agent);
    const unsent = await fixture.undecided('a');
    const back = await there.join('a', { resume_token: welcome.resume_token });
    expect(back.welcome.resumed).toBe(false);
    expect((await fixture.message(ref)).error?.code).toBe('AGENT_DISCONNECTED');
    expect((await fixture.message(unsent)).state).toBe('submitted');
    expect(await fixture.dispatches.find(unsent)).toBeNull();
    expect(await end).toMatchObject(closed);
    await until(() => here.server.stats().inflight === 0);
    expect((await agent.closed).code).toBe(4409);
  });

  it('that stays away too long loses its work', async () => {
    const { node, agent, welcome, ref, end } = await atWork({}, { environment: { RESUME_WINDOW_MS: '100' } });
    agent.kill();
    expect(await end).toMatchObject(closed);
    expect((await fixture.message(ref)).error?.code).toBe('AGENT_DISCONNECTED');
    expect(node.server.stats().suspended).toBe(0);
    const back = await node.join('a', { resume_token: welcome.resume_token });
    expect(back.welcome.resumed).toBe(false);
  });
});

describe('an agent that says goodbye', () => {
  it('finishes what it has within the grace', async () => {
    const { agent, ref, end, dispatch } = await atWork();
    agent.send('close_request', { grace_seconds: 30 });
    await until(async () => (await fixture.agent('a')).status === 'draining');
    dispatch.result('last words');
    expect(await end).toMatchObject(closed);
    expect((await agent.closed).code).toBe(1000);
    expect((await fixture.message(ref)).assistant_output).toBe('last words');
  });

  it('loses what it has not finished by then', async () => {
    const { agent, ref, end } = await atWork();
    agent.send('close_request', { grace_seconds: 0.1 });
    expect((await agent.closed).code).toBe(1000);
    expect(await end).toMatchObject(closed);
    expect((await fixture.message(ref)).error?.code).toBe('AGENT_DISCONNECTED');
  });

  it('loses it at once when it closes its socket first', async () => {
    const { node, agent, ref, end } = await atWork();
    agent.send('close_request', { grace_seconds: 600 });
    await until(async () => (await fixture.agent('a')).status === 'draining');
    agent.close(1000);
    expect(await end).toMatchObject(closed);
    expect((await fixture.message(ref)).error?.code).toBe('AGENT_DISCONNECTED');
    expect(node.server.stats().suspended).toBe(0);
  });
});
