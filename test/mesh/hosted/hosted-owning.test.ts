import { describe, expect, it } from 'vitest';
import { PlatformError } from '../../../runtime/errors.js';
import { freshDatabase } from '../../setup/database.js';
import { gate, until } from '../../setup/until.js';
import { message, statusUpdate, task } from './hosted-agent.js';
import { CLOSED, hostedSetup, STREAMING } from './hosted-fixture.js';

const { fixture } = hostedSetup(freshDatabase);

describe('owning a hosted dispatch', () => {
  it('adopts what runs here already instead of sending it again', async () => {
    const { promise: held, open } = gate();
    const { fixture: made, agent } = await fixture({
      'message/send': async (reply) => {
        await held;
        reply.result(message('hi'));
      },
    });
    const runner = made.runner();
    const ref = await made.open();
    const leaving = new AbortController();
    const first = runner.run(ref, runContext(leaving.signal));
    await until(() => agent.received.length === 1);
    leaving.abort(new Error('activity timed out'));
    await expect(first).rejects.toThrow('activity timed out');
    const context = runContext();
    const second = runner.run(ref, context);
    await until(() => context.heartbeats > 3);
    open();
    expect(await second).toMatchObject(CLOSED);
    expect(agent.received.length).toBe(1);
    expect(await made.get(ref.message_id)).toMatchObject({ state: 'completed' });
  });

  it('does not send again what a node sent that is gone', async () => {
    const { fixture: made, agent } = await fixture({ 'message/send': (reply) => reply.result(message('hi')) });
    const ref = await made.open();
    await made.dispatches.markSent(ref, { mesh_id: 'mesh_gone', epoch: 0 });
    expect(await made.runner().run(ref)).toMatchObject(CLOSED);
    expect(await made.get(ref.message_id)).toMatchObject({ state: 'failed', error: { code: 'AGENT_DISCONNECTED' } });
    expect(agent.received).toEqual([]);
  });

  it('does not send what was canceled before', async () => {
    const { fixture: made, agent } = await fixture({});
    const ref = await made.open();
    await made.gateway.cancel(made.caller, ref.message_id, 'changed my mind');
    expect(await made.runner().run(ref)).toMatchObject(CLOSED);
    expect(agent.received).toEqual([]);
  });

  it('stops at a cancel and tells the agent', async () => {
    const { fixture: made, agent } = await fixture(
      {
        'message/stream': (reply) => reply.event(statusUpdate('working', 'at it')),
        'tasks/cancel': (reply) => reply.result(task('canceled')),
      },
      STREAMING,
    );
    const runner = made.runner();
    const ref = await made.open();
    const seen = made.watch(ref.message_id);
    const run = runner.run(ref);
    await until(() => seen.some((event) => event.kind === 'status_text'));
    await made.gateway.cancel(made.caller, ref.message_id, 'enough');
    await runner.cancel(ref, 'enough');
    expect(await run).toMatchObject(CLOSED);
    expect(agent.methods()).toEqual(['message/stream', 'tasks/cancel']);
    expect(agent.received[1]?.body.params).toMatchObject({ id: 'remote-1' });
    expect(await made.get(ref.message_id)).toMatchObject({ state: 'canceled' });
  });

  it('stops what was canceled in the database only', async () => {
    const { fixture: made, agent } = await fixture({ 'message/send': () => undefined });
    const ref = await made.open();
    const run = made.runner().run(ref);
    await until(() => agent.received.length === 1);
    await made.gateway.cancel(made.caller, ref.message_id, 'enough');
    expect(await run).toMatchObject(CLOSED);
  });

  it('keeps an answer while the database is away', async () => {
    const { fixture: made } = await fixture({ 'message/send': (reply) => reply.result(message('kept')) });
    let outages = 3;
    const end = made.dispatches.end.bind(made.dispatches);
    made.dispatches.end = async (...given) => {
      outages -= 1;
      if (outages >= 0) throw new PlatformError('SERVICE_UNAVAILABLE', 'away');
      return end(...given);
    };
    const ref = await made.open();
    expect(await made.runner().run(ref)).toMatchObject(CLOSED);
    expect(await made.get(ref.message_id)).toMatchObject({ state: 'completed', assistant_output: 'kept' });
    expect(outages).toBeLessThan(0);
  });

  it('leaves a dispatch unsent when the proof for the agent cannot be signed', async () => {
    const { fixture: made, agent } = await fixture({});
    const ref = await made.open();
    const tokens = { issueDispatchToken: () => Promise.reject(new Error('no key')) };
    await expect(made.runner({ tokens }).run(ref)).rejects.toThrow('no key');
    expect(agent.received).toEqual([]);
    expect((await made.dispatches.find(ref))?.sent_at).toBeNull();
  });

  it('waits for what is in flight when it closes, and takes nothing new', async () => {
    const { promise: held, open } = gate();
    const { fixture: made, agent } = await fixture({
      'message/send': async (reply) => {
        await held;
        reply.result(message('hi'));
      },
    });
    const runner = made.runner();
    const ref = await made.open();
    const run = runner.run(ref);
    await until(() => agent.received.length === 1);
    const closing = runner.close(60_000);
    expect(await runner.run(await made.open())).toEqual({ kind: 'not_sent', reason: 'CLOSING' });
    open();
    await closing;
    expect(await run).toMatchObject(CLOSED);
    expect(await made.get(ref.message_id)).toMatchObject({ state: 'completed' });
  });

  it('ends as lost what is still in flight when its time to close is over', async () => {
    const { fixture: made, agent } = await fixture({ 'message/send': () => undefined });
    const runner = made.runner();
    const ref = await made.open();
    const run = runner.run(ref);
    await until(() => agent.received.length === 1);
    await runner.close(1);
    expect(await run).toMatchObject(CLOSED);
    expect(await made.get(ref.message_id)).toMatchObject({ state: 'failed', error: { code: 'AGENT_DISCONNECTED' } });
  });
});
