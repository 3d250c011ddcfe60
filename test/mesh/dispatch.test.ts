import { describe, expect, it } from 'vitest';
import { uuidOf, uuidv7 } from '../../runtime/ids.js';
import { until } from '../setup/until.js';
import { errorOf, receive } from './fixture-agent.js';
import { atWork, fixture, joined, useMesh } from './use-mesh.js';

useMesh('a');

const closed = { kind: 'closed' };
const unsent = { kind: 'not_sent' };
const text = (value: string) => ({ kind: 'text', text: value });

describe('a dispatch', () => {
  it('reaches the agent as documented, and its result ends the message', async () => {
    const { node, agent, ref, end, dispatch } = await atWork({ deadline_ms: 5_000 });
    expect(dispatch.frame.id).toBe(uuidOf(ref.dispatch_id));
    expect(dispatch.frame).toMatchObject({ v: 1, trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) });
    expect(dispatch.payload).toMatchObject({
      jsonrpc: '2.0',
      method: 'message/send',
      dispatch_id: ref.dispatch_id,
      attempt: 1,
      session_context: {
        tenant_id: fixture.tenantId,
        message_id: ref.message_id,
        client_message_id: expect.any(String),
      },
    });
    expect(dispatch.payload.deadline_ms).toBeGreaterThan(0);
    expect(dispatch.payload.deadline_ms).toBeLessThanOrEqual(5_000);
    expect((await fixture.message(ref)).state).toBe('working');
    agent.send('dispatch_ack', {}, dispatch.frame.id);
    dispatch.result('hi', { usage: { input_tokens: 1, output_tokens: 2 } });
    expect(await end).toMatchObject(closed);
    expect(await fixture.message(ref)).toMatchObject({
      state: 'completed',
      assistant_output: 'hi',
      artifacts: [{ artifactId: dispatch.frame.id, parts: [text('hi')] }],
      usage: { input_tokens: 1, output_tokens: 2 },
    });
    expect(node.server.stats().inflight).toBe(0);
  });

  it('carries the args of the caller beside the skill', async () => {
    await fixture.setAgent('a', `skills = '[{"id":"sum"}]'`);
    const { node, agent } = await joined();
    const args = { a: 1, b: { c: [2] } };
    const { dispatch } = await node.send(agent, 'hello', { skill_id: 'sum', args });
    expect(dispatch.payload).toMatchObject({ skill_id: 'sum', args, params: { metadata: { args } } });
    expect((await node.send(agent)).dispatch.payload).not.toHaveProperty('args');
  });

  it('streams its chunks to watchers and keeps them for the end', async () => {
    const { agent, ref, end, dispatch } = await atWork();
    const seen = fixture.watch(ref);
    dispatch.chunk(0, 'one ');
    agent.send('dispatch_chunk', { seq: 1, status_text: 'nearly there' }, dispatch.frame.id);
    dispatch.chunk(2, 'two');
    dispatch.chunk(2, 'two');
    dispatch.chunk(3, '', true);
    dispatch.result('', { chunk_count: 4 });
    await end;
    expect((await fixture.message(ref)).assistant_output).toBe('one two');
    const updates = seen
      .filter((event) => event.kind !== 'changed')
      .map((event) => ('text' in event ? event.text : event.kind === 'artifact' && event.append));
    expect(updates).toEqual([false, 'nearly there', true, true]);
  });

  it('fails on a gap in its chunks, and nothing later of it counts', async () => {
    const { node, agent, ref, end, dispatch } = await atWork();
    dispatch.chunk(0, 'a');
    dispatch.chunk(2, 'c');
    expect((await errorOf(agent, 'CHUNK_SEQ_GAP')).in_reply_to).toBe(dispatch.frame.id);
    dispatch.result('late');
    await errorOf(agent, 'DISPATCH_ALREADY_TERMINAL');
    expect(await end).toMatchObject(closed);
    expect(await fixture.message(ref)).toMatchObject({ state: 'failed', error: { code: 'CHUNK_SEQ_GAP' } });
    const second = await node.send(agent);
    second.dispatch.chunk(0, 'a');
    second.dispatch.result('a', { chunk_count: 2 });
    await second.end;
    expect((await fixture.message(second.ref)).error?.code).toBe('CHUNK_SEQ_GAP');
  });

  it('fails at its deadline, and the agent hears of it', async () => {
    const { agent, ref, end, dispatch } = await atWork({ deadline_ms: 200 });
    agent.send('dispatch_ack', {}, dispatch.frame.id);
    await errorOf(agent, 'DEADLINE_EXCEEDED');
    expect(await end).toMatchObject(closed);
    expect((await fixture.message(ref)).error?.code).toBe('DEADLINE_EXCEEDED');
    dispatch.result('late');
    expect((await errorOf(agent, 'DISPATCH_ALREADY_TERMINAL')).in_reply_to).toBe(dispatch.frame.id);
  });

  it('is canceled at once, by an order or by comparison with the record', async () => {
    const { node, agent } = await joined();
    const canceled = await node.send(agent);
    await fixture.cancel(canceled.ref);
    await node.runner.cancel(canceled.ref, 'changed my mind');
    expect((await errorOf(agent, 'CANCELED')).in_reply_to).toBe(canceled.dispatch.frame.id);
    expect(await canceled.end).toMatchObject(closed);
    const found = await node.send(agent);
    await fixture.cancel(found.ref);
    expect((await errorOf(agent, 'CANCELED')).in_reply_to).toBe(found.dispatch.frame.id);
    expect(await found.end).toMatchObject(closed);
    found.dispatch.result('late');
    await errorOf(agent, 'DISPATCH_ALREADY_TERMINAL');
    expect((await fixture.message(found.ref)).state).toBe('canceled');
  });

  it('that is unknown here is canceled by doing nothing', async () => {
    const node = await fixture.node();
    await node.join('a');
    const ref = await fixture.open();
    await node.runner.cancel(ref, 'why not');
    expect((await fixture.message(ref)).state).toBe('working');
  });
});

describe('frames about dispatches', () => {
  it('that never were, or are another agent’s, are UNKNOWN_DISPATCH', async () => {
    const { node, dispatch } = await atWork();
    await fixture.register('b');
    const { agent: other } = await node.join('b');
    for (const frameId of [uuidv7(), 'nonsense', dispatch.frame.id]) {
      other.send('dispatch_result', { result: 'mine' }, frameId);
      expect((await errorOf(other, 'UNKNOWN_DISPATCH')).in_reply_to).toBe(frameId);
    }
    expect(other.isOpen).toBe(true);
  });

  it('that are open and do not run here do not say that they have ended', async () => {
    const { agent } = await joined();
    const { dispatch_id } = await fixture.open();
    agent.send('dispatch_result', { result: 'mine' }, uuidOf(dispatch_id));
    const { payload } = await errorOf(agent, 'DISPATCH_ALREADY_TERMINAL');
    expect(payload.message).toBe('The dispatch is not at work on this connection.');
  });
});

describe('nothing is sent', () => {
  it('to an agent that is not here or not ready', async () => {
    const [here, there] = [await fixture.node(), await fixture.node()];
    const { agent } = await here.join('a');
    const ref = await fixture.open();
    expect(await there.run(ref)).toMatchObject(unsent);
    await here.send(agent);
    agent.send('close_request', {});
    await until(() => here.server.stats().draining === 1);
    expect(await here.run(ref)).toMatchObject(unsent);
    await fixture.dispatches.release(ref, 'NOT_READY', { nothingSent: true });
    expect(await fixture.dispatches.find(ref)).toBeNull();
    expect((await fixture.message(ref)).state).toBe('working');
  });

  it('to an agent that does not read, beyond a bound', async () => {
    const { node, agent } = await joined();
    agent.pause();
    const refused = await until(async () => {
      const ref = await fixture.open('x'.repeat(200_000));
      const before = node.runner.running.size;
      const end = await Promise.race([node.run(ref), until(() => node.runner.running.size > before)]);
      return typeof end === 'object' && end.kind === 'not_sent' ? ref : undefined;
    });
    agent.resume();
    await until(() => agent.count('dispatch') > 0);
    const ref = await fixture.open();
    await until(async () => {
      const end = await Promise.race([node.run(ref), receive(agent, ref)]);
      return !('kind' in end);
    });
    expect(JSON.stringify(agent.received)).not.toContain(refused.dispatch_id);
  });

  it('to an agent that has not read for too long: it is cut off', async () => {
    const { node, agent } = await joined({ clocks: { blockedMaxMs: 50, closeTimeoutMs: 50 } });
    agent.pause();
    await until(async () => {
      if (node.server.stats().ready === 1) void node.run(await fixture.open('x'.repeat(200_000)));
      return node.server.stats().suspended === 1;
    });
    agent.resume();
    expect([1006, 1013]).toContain((await agent.closed).code);
  });
});
