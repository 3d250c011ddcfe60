import { describe, expect, it } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { gate, until } from '../../setup/until.js';
import { message, statusUpdate, task } from './hosted-agent.js';
import { CLOSED, hostedSetup, STREAMING } from './hosted-fixture.js';

const { fixture } = hostedSetup(freshDatabase);

describe('owning a hosted dispatch', () => {
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
    const seen = made.watch(ref);
    const run = runner.run(ref);
    await until(() => seen.some((event) => event.kind === 'status_text'));
    await made.gateway.cancel(made.caller, ref.message_id, 'enough');
    await runner.cancel(ref, 'enough');
    expect(await run).toMatchObject(CLOSED);
    expect(agent.methods()).toEqual(['message/stream', 'tasks/cancel']);
    expect(agent.received[1]?.body.params).toMatchObject({ id: 'remote-1' });
    expect(await made.message(ref)).toMatchObject({ state: 'canceled' });
  });

  it('releases a dispatch when the proof for the agent cannot be signed', async () => {
    const { fixture: made, agent } = await fixture({});
    const ref = await made.open();
    const tokens = { issueDispatchToken: () => Promise.reject(new Error('no key')) };
    expect(await made.runner({ tokens }).run(ref)).toMatchObject({ kind: 'not_sent' });
    expect(agent.received).toEqual([]);
    expect(await made.dispatchState(ref)).toBe('released');
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
    expect(await runner.run(await made.open())).toMatchObject({ kind: 'not_sent' });
    open();
    await closing;
    expect(await run).toMatchObject(CLOSED);
    expect(await made.message(ref)).toMatchObject({ state: 'completed' });
  });

  it('ends as lost what is still in flight when its time to close is over', async () => {
    const { fixture: made, agent } = await fixture({ 'message/send': () => undefined });
    const runner = made.runner();
    const ref = await made.open();
    const run = runner.run(ref);
    await until(() => agent.received.length === 1);
    await runner.close(1);
    expect(await run).toMatchObject(CLOSED);
    expect(await made.message(ref)).toMatchObject({ state: 'failed', error: { code: 'AGENT_DISCONNECTED' } });
  });
});
