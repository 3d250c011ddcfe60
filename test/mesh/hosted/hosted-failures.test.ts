import { describe, expect, it } from 'vitest';
import { AGENT_NOT_READY } from '../../../contracts/errors.js';
import { freePort } from '../../../embedded/free-port.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { artifactUpdate, message, type Script, task } from './hosted-agent.js';
import { CLOSED, hostedSetup, STREAMING } from './hosted-fixture.js';

const { fixture, outcomeOf, fixtureAt } = hostedSetup(freshDatabase);

const NOT_READY = JSON.stringify({ error: 'no keys yet', code: AGENT_NOT_READY });

const FAILURES: [name: string, script: Script, card: object, code: string, text: RegExp, failures: number][] = [
  [
    'a JSON-RPC error',
    { 'message/send': (r) => r.error(-32005, 'no images') },
    {},
    'HANDLER_ERROR',
    /no images.*-32005/,
    0,
  ],
  [
    'a JSON-RPC error with data',
    { 'message/send': (r) => r.error(-32600, 'Bad payload', { parseError: 'no such member' }) },
    {},
    'HANDLER_ERROR',
    /^Bad payload \(JSON-RPC -32600\): {"parseError":"no such member"}$/,
    0,
  ],
  [
    'a JSON-RPC error with data without end',
    { 'message/send': (r) => r.error(-32600, 'Bad payload', 'x'.repeat(100_000)) },
    {},
    'HANDLER_ERROR',
    /^Bad payload \(JSON-RPC -32600\): x{2000}…$/,
    0,
  ],
  [
    'a strict server that gets more than it knows',
    {},
    { capabilities: { extensions: [{ uri: 'urn:agent-fleet:dispatch:1' }] } },
    'HANDLER_ERROR',
    /-32600.*dispatch_id/,
    0,
  ],
  ['a failed task', { 'message/send': (r) => r.result(task('failed')) }, {}, 'HANDLER_ERROR', /failed/, 0],
  ['HTTP 500', { 'message/send': (r) => r.raw(500, 'text/plain', 'x') }, {}, 'HANDLER_ERROR', /HTTP 500/, 1],
  [
    "a proxy's 503 in JSON",
    { 'message/send': (r) => r.raw(503, 'application/json', '{"code":"SERVICE_UNAVAILABLE"}') },
    {},
    'HANDLER_ERROR',
    /HTTP 503/,
    1,
  ],
  [
    'HTTP 500 that says otherwise',
    { 'message/send': (r) => r.raw(500, 'application/json', NOT_READY) },
    {},
    'HANDLER_ERROR',
    /HTTP 500/,
    1,
  ],
  [
    'a task whose agent is not ready to tell of it',
    { 'message/send': (r) => r.result(task('working')), 'tasks/get': (r) => r.raw(503, 'application/json', NOT_READY) },
    {},
    'AGENT_DISCONNECTED',
    /cannot be reached/,
    1,
  ],
  ['HTTP 401', { 'message/send': (r) => r.raw(401, 'text/plain', 'x') }, {}, 'HANDLER_ERROR', /token.*401/, 0],
  [
    'HTTP 400 with a JSON-RPC error',
    {
      'message/send': (r) =>
        r.raw(400, 'application/json', '{"error":{"code":-32602,"message":"Bad parts","data":["no text"]}}'),
    },
    {},
    'HANDLER_ERROR',
    /^The agent answered HTTP 400: Bad parts \(JSON-RPC -32602\): \["no text"\]$/,
    0,
  ],
  [
    'HTTP 403 with a reason',
    { 'message/send': (r) => r.raw(403, 'application/problem+json', '{"detail":"not you"}') },
    {},
    'HANDLER_ERROR',
    /^The agent refused the platform's token or key \(HTTP 403\): {"detail":"not you"}$/,
    0,
  ],
  [
    'HTTP 404 with a page',
    { 'message/send': (r) => r.raw(404, 'text/html', '<html>') },
    {},
    'HANDLER_ERROR',
    /^The agent answered HTTP 404\.$/,
    0,
  ],
  ['HTTP 404', { 'message/send': (r) => r.raw(404, 'text/plain', 'x') }, {}, 'HANDLER_ERROR', /HTTP 404/, 0],
  ['a web page', { 'message/send': (r) => r.raw(200, 'text/html', '<html>') }, {}, 'HANDLER_ERROR', /is not JSON/, 0],
  [
    'a redirect',
    { 'message/send': (r) => void r.response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end() },
    {},
    'HANDLER_ERROR',
    /redirect/,
    0,
  ],
  [
    'an answer of more than 2 MiB',
    { 'message/send': (r) => r.result(message('x'.repeat(2 * 1024 * 1024))) },
    {},
    'HANDLER_ERROR',
    /larger than 2 MiB/,
    0,
  ],
  ['a reset', { 'message/send': (r) => r.break() }, {}, 'AGENT_DISCONNECTED', /broke/, 1],
  [
    'a stream without an end or a task',
    {
      'message/stream': (r) => {
        r.response.writeHead(200, { 'content-type': 'text/event-stream' });
        r.end();
      },
    },
    STREAMING,
    'AGENT_DISCONNECTED',
    /before it was complete/,
    1,
  ],
  [
    'a stream of something else',
    { 'message/stream': (r) => r.raw(200, 'text/event-stream', 'data: <html>\n\n') },
    STREAMING,
    'HANDLER_ERROR',
    /is not JSON/,
    0,
  ],
  [
    'an event without an end',
    { 'message/stream': (r) => r.raw(200, 'text/event-stream', `data: ${'x'.repeat(2 * 1024 * 1024)}`) },
    STREAMING,
    'HANDLER_ERROR',
    /larger than 1 MiB/,
    0,
  ],
  [
    'an endless stream',
    {
      'message/stream': (r) => {
        const piece = 'x'.repeat(64 * 1024);
        const more = (): void => {
          if (r.response.destroyed) return;
          r.event(artifactUpdate(piece, true));
          setImmediate(more);
        };
        more();
      },
    },
    STREAMING,
    'HANDLER_ERROR',
    /1 MiB of streamed artifacts/,
    0,
  ],
  [
    'a task that cannot be asked for',
    { 'message/send': (r) => r.result(task('working')) },
    {},
    'AGENT_DISCONNECTED',
    /-32601/,
    1,
  ],
  [
    'a task that is not there any more',
    { 'message/send': (r) => r.result(task('working')), 'tasks/get': (r) => r.error(-32001, 'Task not found') },
    {},
    'AGENT_DISCONNECTED',
    /-32001/,
    1,
  ],
  [
    'an agent that is gone before its task is finished',
    { 'message/send': (r) => r.result(task('working')), 'tasks/get': (r) => r.break() },
    {},
    'AGENT_DISCONNECTED',
    /cannot be reached/,
    1,
  ],
];

describe('failures of a hosted agent', () => {
  it.each(FAILURES)('%s', async (_name, script, card, code, text, failures) => {
    const { end, record, fixture: made, ref } = await outcomeOf(script, card);
    expect(end).toMatchObject(CLOSED);
    expect(record).toMatchObject({ state: 'failed', error: { code, message: expect.stringMatching(text) } });
    expect(await made.agent()).toMatchObject({ consecutive_failures: failures });
    expect(await made.dispatchState(ref)).toBe('failed');
  });

  it('fails at the deadline and tells the agent', async () => {
    const {
      record,
      agent,
      fixture: made,
    } = await outcomeOf(
      {
        'message/stream': (reply) => reply.event(task('working')),
        'tasks/cancel': (reply) => reply.result(task('canceled')),
      },
      STREAMING,
      { deadline_ms: 1_500 },
    );
    expect(record).toMatchObject({ state: 'failed', error: { code: 'DEADLINE_EXCEEDED' } });
    expect(await made.agent()).toMatchObject({ consecutive_failures: 1 });
    await until(() => agent.methods().includes('tasks/cancel'));
  });

  it('takes the dispatch back when nobody listens, so that it is routed again; three times make the agent unhealthy', async () => {
    const made = await fixtureAt(`http://127.0.0.1:${await freePort()}/`);
    const runner = made.runner();
    let ref = await made.open();
    const refused = { kind: 'not_sent', reason: 'CONNECT_FAILED' };
    expect(await runner.run(ref)).toEqual(refused);
    expect(await made.dispatchState(ref)).toBe('released');
    for (let n = 0; n < 2; n += 1) {
      ref = await made.reopen(ref.message_id);
      expect(await runner.run(ref)).toEqual(refused);
    }
    expect(await made.agent()).toEqual({ status: 'unhealthy', consecutive_failures: 3 });
    expect((await made.events('agent.health_changed')).map(({ payload }) => payload.status)).toEqual(['unhealthy']);
    expect((await made.get(ref.message_id)).state).not.toBe('failed');
  });

  it('takes the dispatch back when the agent has begun nothing, and tries others first', async () => {
    let isReady = false;
    const { fixture: made } = await fixture({
      'message/send': (reply) => {
        if (isReady) reply.result(message('hi'));
        else reply.raw(503, 'application/json', NOT_READY);
      },
    });
    const runner = made.runner();
    const ref = await made.open();
    expect(await runner.run(ref)).toEqual({ kind: 'not_sent', reason: AGENT_NOT_READY });
    expect(await made.dispatchState(ref)).toBe('released');
    expect(await made.agent()).toMatchObject({ consecutive_failures: 1 });
    expect(await made.unreachableIds(ref.message_id)).toEqual(['hosted-1']);
    isReady = true;
    expect(await runner.run(await made.reopen(ref.message_id))).toMatchObject({ final: 'completed' });
    expect(await made.agent()).toEqual({ status: 'available', consecutive_failures: 0 });
  });

  it('an agent whose connections broke is routed to again as soon as one opens', async () => {
    const { fixture: made } = await fixture({ 'message/send': (reply) => reply.break() });
    const runner = made.runner();
    for (let n = 0; n < 3; n += 1) await runner.run(await made.open());
    await until(async () => (await made.agent())?.status === 'available');
    const statuses = (await made.events('agent.health_changed')).map(({ payload }) => payload.status);
    expect(statuses).toEqual(['unhealthy', 'available']);
  });

  it('takes the dispatch back when the address is not allowed', async () => {
    const made = await fixtureAt('http://10.1.2.3/');
    const ref = await made.open();
    expect(await made.runner().run(ref)).toEqual({ kind: 'not_sent', reason: 'CONNECT_FAILED' });
  });

  it('forgets earlier failures at the next answer', async () => {
    let answers = 0;
    const { fixture: made } = await fixture({
      'message/send': (reply) => {
        answers += 1;
        if (answers === 1) reply.raw(500, 'text/plain', 'x');
        else reply.result(message('hi'));
      },
    });
    const runner = made.runner();
    await runner.run(await made.open());
    expect(await made.agent()).toEqual({ status: 'unknown', consecutive_failures: 1 });
    await runner.run(await made.open());
    expect(await made.agent()).toEqual({ status: 'available', consecutive_failures: 0 });
  });
});
