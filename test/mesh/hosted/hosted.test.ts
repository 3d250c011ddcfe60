import { describe, expect, it } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { gate, until } from '../../setup/until.js';
import { artifact, artifactUpdate, message, type Script, statusUpdate, task } from './hosted-agent.js';
import { CLOSED, type HostedFixture, hostedSetup, STREAMING } from './hosted-fixture.js';

const { fixture, outcomeOf } = hostedSetup(freshDatabase);

/** What becomes of a message whose agent asks "Where?", when a human answers. */
async function answered(made: HostedFixture) {
  const runner = made.runner();
  const ref = await made.open();
  await runner.run(ref);
  const input_request = { kind: 'form', prompt: 'Where?' };
  expect(await made.message(ref)).toMatchObject({ state: 'input-required', input_request });
  await made.gateway.resolve(made.caller, ref.message_id, { resolution: { text: 'Rome' } });
  await runner.run(await made.nextDispatch(ref));
  return made.message(ref);
}

describe('answers of a hosted agent', () => {
  it('completes the message with a message in JSON', async () => {
    const { end, record, agent, ...made } = await outcomeOf({
      'message/send': (reply) => reply.result(message('hi')),
    });
    expect(end).toMatchObject(CLOSED);
    expect(record).toMatchObject({ state: 'completed', assistant_output: 'hi' });
    expect(agent.requests).toEqual(['POST /a2a']);
    expect(agent.received[0]?.headers).toMatchObject({
      authorization: 'Bearer jwt-for-hosted-1',
      baggage: 'team=blue',
      traceparent: expect.stringMatching(new RegExp(`^00-${record.trace_id}-[0-9a-f]{16}-0[01]$`)),
    });
    const dispatch = { attempt: 1, dispatch_id: expect.any(String) };
    expect(agent.received[0]?.body.params).toMatchObject({ metadata: { 'urn:agent-fleet:dispatch:1': dispatch } });
    expect(await made.fixture.hosted()).toMatchObject({ status: 'available', consecutive_failures: 0 });
    expect(await made.fixture.events('agent.health_changed')).toMatchObject([
      { status: 'available', previous_status: 'unknown' },
    ]);
  });

  it('completes the message with a task of an agent that speaks 1.0 only', async () => {
    const parts = [{ text: 'one dot oh' }];
    const { record, agent } = await outcomeOf(
      {
        SendMessage: (reply) =>
          reply.result({
            task: {
              id: 't',
              contextId: 'c',
              status: { state: 'TASK_STATE_COMPLETED' },
              artifacts: [{ artifactId: 'a', parts }],
            },
          }),
      },
      { supportedInterfaces: [{ protocolVersion: '1.0', protocolBinding: 'JSONRPC', url: 'http://127.0.0.1' }] },
    );
    expect(record).toMatchObject({ state: 'completed', assistant_output: 'one dot oh' });
    expect(agent.received[0]?.headers['a2a-version']).toBe('1.0');
  });

  it('tells watchers each piece of a stream and keeps the whole', async () => {
    const { promise: watched, open } = gate();
    const { fixture: made } = await fixture(
      {
        'message/stream': async (reply) => {
          reply.event(task('submitted'));
          reply.event(statusUpdate('working', 'looking'));
          reply.event(artifactUpdate('Hel', false));
          await watched;
          reply.event(artifactUpdate('lo', true));
          reply.event(statusUpdate('completed'));
          reply.end();
        },
      },
      STREAMING,
    );
    const ref = await made.open();
    const seen = made.watch(ref);
    const run = made.runner().run(ref);
    await until(() => seen.some((event) => event.kind === 'artifact'));
    open();
    expect(await run).toMatchObject(CLOSED);
    expect(seen.filter((event) => event.kind !== 'changed')).toEqual([
      { kind: 'status_text', text: 'looking' },
      { kind: 'artifact', artifact: artifact('Hel'), append: false, last_chunk: false },
      { kind: 'artifact', artifact: artifact('lo'), append: true, last_chunk: false },
    ]);
    expect(await made.message(ref)).toMatchObject({ state: 'completed', assistant_output: 'Hello' });
  });

  it('tells watchers no more than 4096 characters of a status, well-formed', async () => {
    const { fixture: made } = await fixture(
      {
        'message/stream': (reply) => {
          reply.event(statusUpdate('working', `${'x'.repeat(4_095)}😀`));
          reply.event(statusUpdate('working', `${'x'.repeat(4_095)}😀 and more`));
          reply.event(statusUpdate('completed'));
          reply.end();
        },
      },
      STREAMING,
    );
    const ref = await made.open();
    const seen = made.watch(ref);
    expect(await made.runner().run(ref)).toMatchObject(CLOSED);
    expect(seen.filter((event) => event.kind === 'status_text')).toEqual([
      { kind: 'status_text', text: `${'x'.repeat(4_095)}\ufffd` },
    ]);
  });

  it('asks for a task that was not finished until it is', async () => {
    let polls = 0;
    const { record, agent } = await outcomeOf({
      'message/send': (reply) => reply.result(task('submitted')),
      'tasks/get': (reply) => {
        polls += 1;
        if (polls === 1) reply.raw(503, 'text/plain', 'later');
        else reply.result(polls < 4 ? task('working') : task('completed', { artifacts: [artifact('at last')] }));
      },
    });
    expect(record).toMatchObject({ state: 'completed', assistant_output: 'at last' });
    expect(agent.methods()).toEqual(['message/send', 'tasks/get', 'tasks/get', 'tasks/get', 'tasks/get']);
    expect(agent.received[1]?.body.params).toMatchObject({ id: 'remote-1' });
  });

  it.each([
    ['ends', (reply: Parameters<NonNullable<Script[string]>>[0]) => reply.end()],
    ['breaks', (reply: Parameters<NonNullable<Script[string]>>[0]) => reply.break()],
  ])('asks for the task when a stream %s before its end', async (_how, leave) => {
    const { record } = await outcomeOf(
      {
        'message/stream': (reply) => {
          reply.event(task('working'));
          reply.event(artifactUpdate('half', false));
          reply.response.write(': still here\n\n', () => leave(reply));
        },
        'tasks/get': (reply) => reply.result(task('completed')),
      },
      STREAMING,
    );
    expect(record).toMatchObject({ state: 'completed', assistant_output: 'half' });
  });

  it('fails the message when it asks with a form that nobody could fill in', async () => {
    const input_request = { kind: 'form', title: 'Fill in', schema: { type: 'banana' } };
    const asking = { ...message('?'), parts: [{ kind: 'data', data: { input_request } }] };
    const { record } = await outcomeOf({
      'message/send': (reply) =>
        reply.result(task('input-required', { status: { state: 'input-required', message: asking } })),
    });
    expect(record).toMatchObject({
      state: 'failed',
      error: { code: 'HANDLER_ERROR', message: expect.stringContaining('"banana"') },
    });
  });

  it('lets a human answer in text what the agent asked in text, and goes on with its task', async () => {
    const made = await fixture({
      'message/send': (reply) => {
        const asked = reply.request.body.params.message as { taskId?: string; parts: { text?: string }[] };
        if (asked.taskId === undefined)
          reply.result(task('input-required', { status: statusUpdate('input-required', 'Where?').status }));
        else reply.result(message(`${asked.taskId}: ${asked.parts[0]?.text}`));
      },
    });
    expect(await answered(made.fixture)).toMatchObject({ state: 'completed', assistant_output: 'remote-1: Rome' });
    expect(made.agent.received[1]?.body.params.message).toMatchObject({ contextId: 'remote-context' });
  });

  it('goes on in a stream that begins with the task as the question left it', async () => {
    const asking = { status: statusUpdate('input-required', 'Where?').status };
    const made = await fixture(
      {
        'message/stream': (reply) => {
          const { taskId } = reply.request.body.params.message as { taskId?: string };
          reply.event(task('input-required', asking));
          if (taskId !== undefined) {
            reply.event(statusUpdate('working'));
            reply.event(artifactUpdate('Rome it is', false));
            reply.event(statusUpdate('completed'));
          }
          reply.end();
        },
      },
      STREAMING,
    );
    expect(await answered(made.fixture)).toMatchObject({ state: 'completed', assistant_output: 'Rome it is' });
  });
});
