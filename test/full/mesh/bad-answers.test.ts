import { describe, expect, it } from 'vitest';
import { CLOSE_CODES } from '../../../contracts/errors.js';
import { LIMITS } from '../../../contracts/limits.js';
import { errorOf } from '../../mesh/fixture-agent.js';
import { callTool, refusedWith, resultOf, take } from '../../mesh/tools/tool-fixture.js';
import { fixture, joined, useMesh } from '../../mesh/use-mesh.js';

useMesh('a', 'b');

const text = (value: string) => ({ kind: 'text', text: value });
const deep = (depth: number): unknown => (depth === 0 ? 1 : { a: deep(depth - 1) });
const task = (more: object) => ({ kind: 'task', id: 't', contextId: 'c', status: { state: 'completed' }, ...more });
const said = (more: object) => ({ kind: 'message', messageId: 'm', role: 'agent', parts: [], ...more });
const asks = (input_request: object) => ({ result: '', status: { state: 'input-required', input_request } });
const riddle = { input_request: { kind: 'riddle' } };

const frameOf = (type: string, payload: unknown, more: object = {}) => {
  const envelope = { v: 1, id: crypto.randomUUID(), ts: new Date().toISOString() };
  return { ...envelope, type, payload, ...more };
};

/** Content that is wrong inside a frame that is right, and the member that the reason names. */
const BAD_CONTENT: [name: string, type: string, payload: object, member: string][] = [
  ['an artifact without an id', 'dispatch_chunk', { seq: 0, artifact: { parts: [text('x')] } }, 'artifact.artifactId'],
  ['NUL in a chunk', 'dispatch_chunk', { seq: 0, parts: [text('a\0b')] }, 'payload.parts'],
  ['a text part without text', 'dispatch_result', { result: said({ parts: [{ kind: 'text' }] }) }, 'parts.0.text'],
  ['an artifact without an id', 'dispatch_result', { result: task({ artifacts: [{ parts: [] }] }) }, 'artifactId'],
  ['a fraction of a token', 'dispatch_result', { result: '', usage: { input_tokens: 0.5, output_tokens: 1 } }, 'usage'],
  ['an unknown kind of question', 'dispatch_result', asks({ kind: 'riddle' }), 'input_request.kind'],
  ['an unknown state', 'dispatch_result', { result: '', status: { state: 'finished' } }, 'status.state'],
  [
    'a question in a data part that is none',
    'dispatch_result',
    { result: said({ parts: [{ kind: 'data', data: riddle }] }), status: { state: 'input-required' } },
    'input_request.kind',
  ],
  ['NUL in an error', 'error', { code: 'OWN', message: 'a\0b' }, 'payload.message'],
];

describe('an answer whose content does not fit', () => {
  it('fails its dispatch, of which the agent hears while it streams, and the socket lives on', async () => {
    const { node, agent } = await joined();
    for (const [name, type, payload, member] of BAD_CONTENT) {
      const bad = await node.send(agent, name);
      agent.send(type, payload, bad.dispatch.frame.id);
      if (type === 'dispatch_chunk') {
        expect([name, (await errorOf(agent, 'HANDLER_ERROR')).in_reply_to]).toEqual([name, bad.dispatch.frame.id]);
      }
      await bad.end;
      const { state, error } = await fixture.message(bad.ref);
      expect([name, state, error?.code]).toEqual([name, 'failed', 'HANDLER_ERROR']);
      expect(error?.message, name).toContain(member);
      bad.dispatch.result('late');
      await errorOf(agent, 'DISPATCH_ALREADY_TERMINAL');
    }
    const good = await node.send(agent, 'good');
    good.dispatch.result('hi');
    await good.end;
    expect(await fixture.message(good.ref)).toMatchObject({ state: 'completed', assistant_output: 'hi' });
  });

  it('is an error of a code that is too long, too: it ends the dispatch in the words of the agent', async () => {
    const { node, agent } = await joined();
    const { ref, end, dispatch } = await node.send(agent);
    dispatch.error(`OWN_${'X'.repeat(5_000)}`, 'no luck');
    await end;
    const { error } = await fixture.message(ref);
    expect(error).toEqual({ code: 'HANDLER_ERROR', message: expect.stringMatching(/^OWN_XXX/) });
    expect(error?.message.length).toBe(4_096);
    expect(agent.isOpen).toBe(true);
  });

  it('is no status text that is too long, which is cut off, and no task of an agent that keeps no contexts', async () => {
    const { node, agent } = await joined();
    const { ref, end, dispatch } = await node.send(agent);
    const seen = fixture.watch(ref);
    agent.send('dispatch_chunk', { seq: 0, status_text: 'x'.repeat(5_000) }, dispatch.frame.id);
    dispatch.result(task({ contextId: undefined, artifacts: [{ artifactId: 'x', parts: [text('b')] }] }));
    await end;
    expect(seen).toContainEqual({ kind: 'status_text', text: 'x'.repeat(4_096) });
    expect(await fixture.message(ref)).toMatchObject({ state: 'completed', assistant_output: 'b' });
  });
});

// Which frames are bad is in connection/frames.test.ts.
describe('a frame that breaks the schema', () => {
  it.each<[name: string, payload: unknown, envelope?: object]>([
    ['a payload that does not fit', {}],
    ['a payload that is no object', 'x'],
    ['another version', { result: 'x' }, { v: 2 }],
  ])('fails the dispatch that it names before the socket closes: %s', async (_name, payload, more) => {
    const { node, agent, welcome } = await joined();
    const bad = await node.send(agent, 'bad');
    const other = await node.send(agent, 'other');
    const in_reply_to = bad.dispatch.frame.id;
    agent.sendRaw(JSON.stringify(frameOf('dispatch_result', payload, { in_reply_to, ...more })));
    await errorOf(agent, 'BAD_FRAME');
    expect((await agent.closed).code).toBe(CLOSE_CODES.BAD_FRAME);
    const back = await node.join('a', { resume_token: welcome.resume_token });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [other.ref.dispatch_id] });
    await bad.end;
    expect(await fixture.message(bad.ref)).toMatchObject({ state: 'failed', error: { code: 'HANDLER_ERROR' } });
  });

  it('fails no dispatch of another agent', async () => {
    const { node, agent } = await joined();
    const { ref, end, dispatch } = await node.send(agent);
    const { agent: other } = await node.join('b');
    other.send('dispatch_result', {}, dispatch.frame.id);
    await other.closed;
    dispatch.result('hi');
    await end;
    expect((await fixture.message(ref)).state).toBe('completed');
  });
});

describe('a tool call', () => {
  async function pair() {
    const { node, agent: caller } = await joined();
    const { agent: worker } = await node.join('b', { tools: ['t'] });
    return { caller, worker };
  }

  it('fails with HANDLER_ERROR when its result does not fit, and at last before the socket closes', async () => {
    const { caller, worker } = await pair();
    for (const [type, payload] of [
      ['tool_result', { ok: false, error: { message: 'x' } }],
      ['tool_result', { ok: true, result: 'a\0b' }],
      ['tool_result', { ok: true, result: deep(40) }],
      ['error', { code: 'OWN', message: 'a\0b' }],
      ['tool_result', { result: 1 }], // breaks the schema
    ] as const) {
      const id = callTool(caller, { tool: 't' });
      worker.send(type, payload, (await take(worker, 't')).frame.id);
      expect([payload, await resultOf(caller, id)]).toEqual([payload, refusedWith('HANDLER_ERROR')]);
    }
    expect((await worker.closed).code).toBe(CLOSE_CODES.BAD_FRAME);
  });

  it('keeps the words of an agent whose code is too long, as far as there is room', async () => {
    const { caller, worker } = await pair();
    const id = callTool(caller, { tool: 't' });
    (await take(worker, 't')).error('C'.repeat(5_000), 'm'.repeat(5_000));
    const error = { code: 'C'.repeat(64), message: 'm'.repeat(4_096), retryable: false };
    expect(await resultOf(caller, id)).toEqual({ ok: false, error });
  });

  it('is refused when its arguments are not fit to be kept, and the socket lives on', async () => {
    const { caller } = await pair();
    const trace = { trace_id: 'a'.repeat(32), parent_span_id: 'b'.repeat(16) };
    const id = callTool(caller, { tool: 't', arguments: { a: '\0' } }, trace);
    const frame = await caller.next(({ in_reply_to }) => in_reply_to === id);
    expect(frame).toMatchObject({ type: 'tool_result', ...trace });
    expect(frame.payload).toEqual(refusedWith('BAD_REQUEST'));
    expect(caller.isOpen).toBe(true);
  });
});

it('an agent’s own trace goes on in what answers its frame', async () => {
  const trace = { trace_id: 'a'.repeat(32), parent_span_id: 'b'.repeat(16) };
  const { agent } = await joined();
  for (const [type, payload, in_reply_to] of [
    ['ping', {}, undefined],
    ['dispatch_result', { result: 'x' }, crypto.randomUUID()],
    ['applause', {}, undefined],
  ] as const) {
    const sent = frameOf(type, payload, { in_reply_to, ...trace });
    agent.sendRaw(JSON.stringify(sent));
    const answer = await agent.next((frame) => frame.in_reply_to === (in_reply_to ?? sent.id));
    expect([type, answer]).toMatchObject([type, trace]);
  }
});

describe('the output of a dispatch', () => {
  it('counts what is told of the status', async () => {
    const { node, agent } = await joined();
    const { ref, end, dispatch } = await node.send(agent);
    const status_text = 'x'.repeat(4_096);
    const count = LIMITS.chunkBytesBufferedPerDispatch / status_text.length;
    for (let seq = 0; seq <= count; seq += 1) agent.send('dispatch_chunk', { seq, status_text }, dispatch.frame.id);
    await end;
    const { error } = await fixture.message(ref);
    expect(error).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('larger than') });
  });

  it('may come in many chunks at once; a flood of them ends it with RATE_LIMITED, and only it', async () => {
    const { node, agent } = await joined();
    const quick = await node.send(agent, 'quick');
    const flood = await node.send(agent, 'flood');
    for (let seq = 0; seq < 5_000; seq += 1) quick.dispatch.chunk(seq, 'word ');
    quick.dispatch.result('', { chunk_count: 5_000 });
    // More than the bucket holds and gains, however slow the machine.
    const count = 10 * LIMITS.chunksAtOncePerDispatch;
    for (let seq = 0; seq < count; seq += 1) agent.send('dispatch_chunk', { seq }, flood.dispatch.frame.id);
    await errorOf(agent, 'RATE_LIMITED');
    await Promise.all([quick.end, flood.end]);
    expect((await fixture.message(quick.ref)).assistant_output).toBe('word '.repeat(5_000));
    expect((await fixture.message(flood.ref)).error?.code).toBe('RATE_LIMITED');
    expect(agent.isOpen).toBe(true);
  });
});
