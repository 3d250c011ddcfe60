import { describe, expect, it } from 'vitest';
import { AGENT_NOT_READY } from '../../../contracts/errors.js';
import { freePort } from '../../../embedded/free-port.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { artifactUpdate, message, type Script, task } from './hosted-agent.js';
import { CLOSED, hostedSetup, STREAMING } from './hosted-fixture.js';

const { fixture, outcomeOf, fixtureAt } = hostedSetup(freshDatabase);

const NOT_READY = JSON.stringify({ error: 'no keys yet', code: AGENT_NOT_READY });

type Answer = NonNullable<Script[string]>;
const send = (answer: Answer): Script => ({ 'message/send': answer });
const stream = (answer: Answer): Script => ({ 'message/stream': answer });
/** An agent that has begun a task, and says no more of it than this. */
const working = (asked?: Answer): Script => ({
  'message/send': (r) => r.result(task('working')),
  ...(asked && { 'tasks/get': asked }),
});

/** Each fails with HANDLER_ERROR and is no failure of the agent's health, where nothing else is said. */
interface Failure {
  code?: string;
  failures?: number;
  card?: object;
}
const LOST: Failure = { code: 'AGENT_DISCONNECTED', failures: 1 };

const FAILURES: [name: string, script: Script, text: RegExp, more?: Failure][] = [
  ['a JSON-RPC error', send((r) => r.error(-32005, 'no images')), /no images.*-32005/],
  [
    'a JSON-RPC error with data',
    send((r) => r.error(-32600, 'Bad payload', { parseError: 'no such member' })),
    /^Bad payload \(JSON-RPC -32600\): {"parseError":"no such member"}$/,
  ],
  [
    'a JSON-RPC error with data without end',
    send((r) => r.error(-32600, 'Bad payload', 'x'.repeat(100_000))),
    /^Bad payload \(JSON-RPC -32600\): x{2000}…$/,
  ],
  [
    'a strict server that gets more than it knows',
    {},
    /-32600.*dispatch_id/,
    { card: { capabilities: { extensions: [{ uri: 'urn:agent-fleet:dispatch:1' }] } } },
  ],
  ['a failed task', send((r) => r.result(task('failed'))), /failed/],
  ['HTTP 500', send((r) => r.raw(500, 'text/plain', 'x')), /HTTP 500/, { failures: 1 }],
  [
    "a proxy's 503 in JSON",
    send((r) => r.raw(503, 'application/json', '{"code":"SERVICE_UNAVAILABLE"}')),
    /HTTP 503/,
    { failures: 1 },
  ],
  ['HTTP 500 that says otherwise', send((r) => r.raw(500, 'application/json', NOT_READY)), /HTTP 500/, { failures: 1 }],
  [
    'a task whose agent is not ready to tell of it',
    working((r) => r.raw(503, 'application/json', NOT_READY)),
    /cannot be reached/,
    LOST,
  ],
  ['HTTP 401', send((r) => r.raw(401, 'text/plain', 'x')), /token.*401/],
  [
    'HTTP 400 with a JSON-RPC error',
    send((r) => r.raw(400, 'application/json', '{"error":{"code":-32602,"message":"Bad parts","data":["no text"]}}')),
    /^The agent answered HTTP 400: Bad parts \(JSON-RPC -32602\): \["no text"\]$/,
  ],
  [
    'HTTP 403 with a reason',
    send((r) => r.raw(403, 'application/problem+json', '{"detail":"not you"}')),
    /^The agent refused the platform's token or key \(HTTP 403\): {"detail":"not you"}$/,
  ],
  ['HTTP 404 with a page', send((r) => r.raw(404, 'text/html', '<html>')), /^The agent answered HTTP 404\.$/],
  ['a web page', send((r) => r.raw(200, 'text/html', '<html>')), /is not JSON/],
  ['a redirect', send((r) => void r.response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()), /redirect/],
  ['an answer of more than 2 MiB', send((r) => r.result(message('x'.repeat(2 * 1024 * 1024)))), /larger than 2 MiB/],
  ['a reset', send((r) => r.break()), /broke/, LOST],
  [
    'a stream without an end or a task',
    stream((r) => r.raw(200, 'text/event-stream', '')),
    /before it was complete/,
    { ...LOST, card: STREAMING },
  ],
  [
    'a stream of something else',
    stream((r) => r.raw(200, 'text/event-stream', 'data: <html>\n\n')),
    /is not JSON/,
    { card: STREAMING },
  ],
  [
    'an event without an end',
    stream((r) => r.raw(200, 'text/event-stream', `data: ${'x'.repeat(2 * 1024 * 1024)}`)),
    /larger than 1 MiB/,
    { card: STREAMING },
  ],
  [
    'an endless stream',
    stream((r) => {
      const piece = 'x'.repeat(64 * 1024);
      const more = (): void => {
        if (r.response.destroyed) return;
        r.event(artifactUpdate(piece, true));
        setImmediate(more);
      };
      more();
    }),
    /1 MiB of streamed artifacts/,
    { card: STREAMING },
  ],
  ['a task that cannot be asked for', working(), /-32601/, LOST],
  ['a task that is not there any more', working((r) => r.error(-32001, 'Task not found')), /-32001/, LOST],
  ['an agent that is gone before its task is finished', working((r) => r.break()), /cannot be reached/, LOST],
];

describe('failures of a hosted agent', () => {
  it.each(FAILURES)('%s', async (_name, script, text, { code = 'HANDLER_ERROR', failures = 0, card } = {}) => {
    const { end, record, fixture: made, ref } = await outcomeOf(script, card);
    expect(end).toMatchObject(CLOSED);
    expect(record).toMatchObject({ state: 'failed', error: { code, message: expect.stringMatching(text) } });
    expect(await made.hosted()).toMatchObject({ consecutive_failures: failures });
    expect(await made.dispatchState(ref)).toBe('failed');
  });

  it('fails at the deadline and tells the agent', async () => {
    const script: Script = {
      'message/stream': (reply) => reply.event(task('working')),
      'tasks/cancel': (reply) => reply.result(task('canceled')),
    };
    const { record, agent, ...made } = await outcomeOf(script, STREAMING, { deadline_ms: 1_500 });
    expect(record).toMatchObject({ state: 'failed', error: { code: 'DEADLINE_EXCEEDED' } });
    expect(await made.fixture.hosted()).toMatchObject({ consecutive_failures: 1 });
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
      ref = await made.nextDispatch(ref);
      expect(await runner.run(ref)).toEqual(refused);
    }
    expect(await made.hosted()).toMatchObject({ status: 'unhealthy', consecutive_failures: 3 });
    expect((await made.events('agent.health_changed')).map(({ status }) => status)).toEqual(['unhealthy']);
    expect((await made.message(ref)).state).not.toBe('failed');
  });

  it('takes the dispatch back when the agent has begun nothing, and tries others first', async () => {
    let isReady = false;
    const { fixture: made } = await fixture(
      send((reply) => {
        if (isReady) reply.result(message('hi'));
        else reply.raw(503, 'application/json', NOT_READY);
      }),
    );
    const runner = made.runner();
    const ref = await made.open();
    expect(await runner.run(ref)).toEqual({ kind: 'not_sent', reason: AGENT_NOT_READY });
    expect(await made.dispatchState(ref)).toBe('released');
    expect(await made.hosted()).toMatchObject({ consecutive_failures: 1 });
    expect(await made.unreachableIds(ref.message_id)).toEqual(['hosted-1']);
    isReady = true;
    expect(await runner.run(await made.nextDispatch(ref))).toMatchObject({ final: 'completed' });
    expect(await made.hosted()).toMatchObject({ status: 'available', consecutive_failures: 0 });
  });

  it('an agent whose connections broke is routed to again as soon as one opens', async () => {
    const { fixture: made } = await fixture({ 'message/send': (reply) => reply.break() });
    const runner = made.runner();
    for (let n = 0; n < 3; n += 1) await runner.run(await made.open());
    await until(async () => (await made.hosted()).status === 'available');
    const statuses = (await made.events('agent.health_changed')).map(({ status }) => status);
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
    expect(await made.hosted()).toMatchObject({ status: 'unknown', consecutive_failures: 1 });
    await runner.run(await made.open());
    expect(await made.hosted()).toMatchObject({ status: 'available', consecutive_failures: 0 });
  });
});
