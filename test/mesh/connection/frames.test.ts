import { describe, expect, it } from 'vitest';
import { encodeFrame, errorFrame, parseFrame } from '../../../mesh/frames/frames.js';
import { uuidv7 } from '../../../runtime/ids.js';

const ID = uuidv7();
const envelope = { v: 1, id: ID, ts: '2026-01-02T03:04:05.678Z' };
const frame = (type: string, payload: unknown, more: object = {}) =>
  JSON.stringify({ ...envelope, type, payload, ...more });
const deep = (depth: number): unknown => (depth === 0 ? 1 : { a: deep(depth - 1) });

const BAD: [name: string, text: string][] = [
  ['not JSON', '{'],
  ['an array', '[]'],
  ['null', 'null'],
  ['a number', '7'],
  ['100,000 levels deep', '['.repeat(100_000)],
  ['another version', JSON.stringify({ ...envelope, v: 2, type: 'ping', payload: {} })],
  ['no id', JSON.stringify({ ...envelope, id: undefined, type: 'ping', payload: {} })],
  ['an id that is no UUID', JSON.stringify({ ...envelope, id: 'one', type: 'ping', payload: {} })],
  ['no time', JSON.stringify({ ...envelope, ts: 'now', type: 'ping', payload: {} })],
  ['no payload', JSON.stringify({ ...envelope, type: 'ping' })],
  ['a payload that is an array', frame('ping', [])],
  ['hello without an instance', frame('hello', {})],
  ['hello with a malformed instance', frame('hello', { instance_id: '../x' })],
  ['hello with large skills', frame('hello', { instance_id: 'a', skills: [{ id: 'a', more: 'x'.repeat(65_536) }] })],
  ['a chunk without a number', frame('dispatch_chunk', { parts: [] }, { in_reply_to: ID })],
  ['a chunk with a negative number', frame('dispatch_chunk', { seq: -1 }, { in_reply_to: ID })],
  ['a result without a result', frame('dispatch_result', {}, { in_reply_to: ID })],
  ['a result that answers nothing', frame('dispatch_result', { result: 'x' })],
  ['a pong that answers nothing', frame('pong', {})],
  ['an acknowledgement that answers null', frame('dispatch_ack', {}, { in_reply_to: null })],
  ['a tool result that answers nothing', frame('tool_result', { ok: true })],
  ['an error without a code', frame('error', { message: 'x' })],
  ['a heartbeat with an odd status', frame('heartbeat', { status: 'offline' })],
  ['a welcome', frame('welcome', {})],
  ['a dispatch', frame('dispatch', {})],
  ['a NUL', frame('ping', { nonce: 'a\0b' })],
  ['a NUL in the envelope', frame('dispatch_result', { result: 'x' }, { in_reply_to: 'a\0b' })],
  ['a result of another JSON type', frame('dispatch_result', { result: 5 }, { in_reply_to: ID })],
  ['usage of another JSON type', frame('dispatch_result', { result: '', usage: 5 }, { in_reply_to: ID })],
  ['parts of another JSON type', frame('dispatch_chunk', { seq: 0, parts: 'x' }, { in_reply_to: ID })],
  ['an error whose message is a number', frame('error', { code: 'x', message: 1 }, { in_reply_to: ID })],
  ['a tool result that does not say whether it is one', frame('tool_result', { result: 1 }, { in_reply_to: ID })],
  ['a prototype key', `{"v":1,"type":"ping","id":"${ID}","ts":"2026-01-02T03:04:05Z","payload":{"__proto__":{}}}`],
  ['33 levels deep', frame('ping', deep(33))],
];

const answers = { in_reply_to: ID };
const UNFIT: [name: string, text: string, problem: RegExp][] = [
  ['a NUL', frame('dispatch_result', { result: 'a\0b' }, answers), /^payload\.result holds a NUL/],
  [
    'a prototype key',
    `{"v":1,"type":"dispatch_result","id":"${ID}","ts":"2026-01-02T03:04:05Z","in_reply_to":"${ID}",
     "payload":{"result":{"__proto__":{}}}}`,
    /^payload\.result holds the key __proto__/,
  ],
  ['33 levels', frame('dispatch_result', { result: deep(31) }, answers), /^payload\.result is nested deeper than 32/],
  ['a part that is none', frame('dispatch_chunk', { seq: 0, parts: [7] }, answers), /^payload\.parts\.0/],
  ['a task that is none', frame('dispatch_result', { result: { kind: 'task' } }, answers), /^payload\.result\.id/],
  ['a failed tool without an error', frame('tool_result', { ok: false }, answers), /^payload\.error/],
  ['a NUL in arguments', frame('tool_call', { tool: 't', arguments: { a: '\0' } }), /^payload\.arguments holds a NUL/],
];
const TRACE = { trace_id: '0af7651916cd43dd8448eb211c80319c', parent_span_id: 'b7ad6b7169203331' };

describe('frames from agents', () => {
  it.each(UNFIT)('are unfit, not bad, when only their content is: %s', (_name, text, problem) => {
    expect(parseFrame(text)).toMatchObject({
      kind: 'unfit',
      frame: { id: ID, problem: expect.stringMatching(problem) },
    });
  });

  it('carry content as deep as a frame may be', () => {
    expect(parseFrame(frame('dispatch_result', { result: deep(30) }, answers))).toMatchObject({ kind: 'frame' });
  });

  it.each([
    ['a whole one', TRACE, `00-${TRACE.trace_id}-${TRACE.parent_span_id}-01`],
    ['half of one', { trace_id: TRACE.trace_id }, undefined],
    ['zeros', { ...TRACE, parent_span_id: '0'.repeat(16) }, undefined],
    ['capital letters', { ...TRACE, trace_id: TRACE.trace_id.toUpperCase() }, undefined],
    ['another length', { ...TRACE, trace_id: 'abc' }, undefined],
  ])('name their trace where it is valid: %s', (_name, trace, traceparent) => {
    const parsed = parseFrame(frame('dispatch_result', { result: 'x' }, { ...answers, ...trace }));
    expect(parsed).toMatchObject({ kind: 'frame' });
    expect(parsed.kind === 'frame' && parsed.frame.traceparent).toBe(traceparent);
  });

  it.each(BAD)('are bad: %s', (_name, text) => {
    expect(parseFrame(text)).toMatchObject({ kind: 'bad', problem: expect.any(String) });
  });

  it('are unknown, not bad, when only their type is', () => {
    expect(parseFrame(frame('applause', { loud: true }))).toEqual({ kind: 'unknown', id: ID, type: 'applause' });
  });

  it('may carry members that nobody knows', () => {
    const parsed = parseFrame(frame('ping', { nonce: 'n', mood: 'good' }, { extra: 1 }));
    expect(parsed).toEqual({ kind: 'frame', frame: { type: 'ping', id: ID, reply_to: '', payload: { nonce: 'n' } } });
  });

  it('carry well-formed text, but a chunk may end inside a surrogate pair', () => {
    const result = parseFrame(frame('dispatch_result', { result: '\ud83d' }, { in_reply_to: ID }));
    expect(result).toMatchObject({ frame: { payload: { result: '\ufffd' } } });
    const chunk = parseFrame(
      frame('dispatch_chunk', { seq: 0, parts: [{ kind: 'text', text: '\ud83d' }] }, { in_reply_to: ID }),
    );
    expect(chunk).toMatchObject({ frame: { payload: { parts: [{ text: '\ud83d' }] } } });
  });
});

describe('frames from the mesh', () => {
  it('have the envelope that agents are promised', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const sent = JSON.parse(encodeFrame('pong', { nonce: 'n' }, { reply_to: ID, traceparent })) as Record<
      string,
      unknown
    >;
    expect(sent).toMatchObject({ v: 1, type: 'pong', in_reply_to: ID, payload: { nonce: 'n' } });
    expect(sent).toMatchObject({ trace_id: '0af7651916cd43dd8448eb211c80319c', parent_span_id: 'b7ad6b7169203331' });
    expect(sent.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  it('say whether trying again may help', () => {
    expect(JSON.parse(errorFrame('TOKEN_EXPIRED', 'm'))).toMatchObject({ payload: { retryable: true } });
    expect(JSON.parse(errorFrame('BAD_FRAME', 'm'))).toMatchObject({ payload: { retryable: false } });
  });
});
