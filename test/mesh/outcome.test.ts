import { describe, expect, it } from 'vitest';
import type { Artifact } from '../../contracts/a2a/parts.js';
import { DispatchResultPayload } from '../../contracts/frames.js';
import { reportedFailure, toAgentResult } from '../../mesh/connected/agent-result.js';

const UUID = '0198c7a4-0000-7000-8000-000000000001';
const text = (value: string) => ({ kind: 'text' as const, text: value });
const data = (value: object) => ({ kind: 'data' as const, data: value as Record<string, unknown> });
const own = (...parts: Artifact['parts']): Artifact => ({ artifactId: UUID, parts });
const named = (value: string) => ({ artifacts: [{ artifactId: 'x', parts: [text(value)] }] });
const said = (...parts: object[]) => ({ kind: 'message', messageId: 'm', role: 'agent', parts });
const task = (state: string, more: object = {}, message?: object) => ({
  kind: 'task',
  id: 't',
  contextId: 'c',
  status: { state, ...(message && { message }) },
  ...more,
});
const read = (payload: unknown, streamed: Artifact[] = []) =>
  toAgentResult(DispatchResultPayload.parse(payload), streamed, `dsp_${UUID}`);
/** What was streamed before some of the answers. */
const A = [own(text('a'))];

const ANSWERS: [name: string, result: unknown, streamed: Artifact[], expected: object][] = [
  ['a string', 'hi', [], { state: 'completed', artifacts: [own(text('hi'))] }],
  ['an empty string', '', [], { state: 'completed', artifacts: [] }],
  ['a string that repeats the stream', 'a', A, { artifacts: A }],
  [
    'a string beside a stream',
    'done',
    A,
    { artifacts: [...A, { artifactId: `${UUID}:result`, parts: [text('done')] }] },
  ],
  ['an object', { n: 1 }, [], { state: 'completed', artifacts: [own(data({ n: 1 }))] }],
  ['an empty object after a stream', {}, A, { artifacts: A }],
  ['an object of a kind of its own', { kind: 'invoice' }, [], { artifacts: [own(data({ kind: 'invoice' }))] }],
  ['a message', said(text('hi')), [], { artifacts: [own(text('hi'))], status_message: said(text('hi')) }],
  ['a message after a stream', said(text('bye')), A, { artifacts: A, status_message: said(text('bye')) }],
  [
    'a task with artifacts, which are the whole answer',
    task('completed', named('b')),
    A,
    { state: 'completed', ...named('b'), remote_task_id: 't', remote_context_id: 'c' },
  ],
  ['a task after a stream', task('completed'), A, { state: 'completed', artifacts: A }],
];

describe('what an agent answers', () => {
  it.each(ANSWERS)('is read: %s', (_name, result, streamed, expected) => {
    expect(read({ result }, streamed)).toMatchObject(expected);
  });

  it('is a loss only where the agent says that it has not finished, whatever the code', () => {
    const error = { code: 'AGENT_DISCONNECTED', message: 'gone', retryable: false };
    const unfinished = { ...error, unfinished: true };
    expect(reportedFailure(error)).not.toHaveProperty('is_loss');
    expect(reportedFailure(unfinished)).toMatchObject({ is_loss: true });
    const failed = (metadata: object) => read({ result: task('failed', { metadata }) });
    expect(failed({ error })).not.toHaveProperty('is_loss');
    expect(failed({ error: unfinished })).toMatchObject({ error: { code: error.code }, is_loss: true });
  });

  it('has the state of its task, or that which the status says', () => {
    const states = {
      ...{ completed: 'completed', 'input-required': 'input-required', 'auth-required': 'input-required' },
      ...{ failed: 'failed', rejected: 'failed', canceled: 'failed' },
      ...{ working: 'failed', submitted: 'failed', unknown: 'failed' },
    };
    const found = Object.keys(states).map((state) => [state, read({ result: task(state) }).state]);
    expect(Object.fromEntries(found)).toEqual(states);
    expect(read({ result: task('working'), status: { state: 'completed' } }).state).toBe('completed');
  });

  it('fails with the words of the agent', () => {
    const failed = { status: { state: 'failed' } };
    expect(read({ result: 'no', ...failed }).error).toEqual({ code: 'HANDLER_ERROR', message: 'no' });
    expect(read({ result: task('rejected', {}, said(text('not mine'))) }).error?.message).toBe('not mine');
    expect(read({ result: {}, ...failed }).error?.message).toBe('The agent reported a failure.');
  });

  it('asks by its status or by a data part of the message', () => {
    const input_request = { kind: 'confirmation' as const, title: 'Go on?' };
    const byStatus = { result: '', status: { state: 'input-required', input_request } };
    expect(read(byStatus).input_request).toEqual(input_request);
    const message = said(text('?'), data({ input_request }));
    expect(read({ result: task('input-required', {}, message) }).input_request).toEqual(input_request);
    expect(read({ result: task('completed', {}, message) }).input_request).toBeUndefined();
    const riddle = said(data({ input_request: { kind: 'riddle' } }));
    const error = { code: 'HANDLER_ERROR', message: expect.stringContaining('input_request.kind') };
    expect(read({ result: task('input-required', {}, riddle) })).toMatchObject({ state: 'failed', error });
  });

  it.each([
    ['a task', { kind: 'task' }],
    ['a task whose status is null', task('completed', { status: null })],
    ['a message', { kind: 'message', parts: [] }],
    ['a message in another dialect', said({ type: 'text', text: 'x' })],
  ])('is none where it only calls itself %s', (_name, result) => {
    expect(DispatchResultPayload.safeParse({ result }).success).toBe(false);
  });

  it('tells what it used, and keeps no id that is longer than an id is', () => {
    const usage = { input_tokens: 1, output_tokens: 2, model: 'm' };
    expect(read({ result: 'x', usage }).usage).toEqual(usage);
    const long = { id: 'x'.repeat(10_000), contextId: 'x'.repeat(10_000) };
    expect(Object.keys(read({ result: task('completed', long) })).filter((key) => key.startsWith('remote'))).toEqual(
      [],
    );
  });
});

it.each([
  [{ error: { code: 'AGENT_BUSY', message: 'later' } }, { code: 'AGENT_BUSY', message: 'later' }],
  [{ error: { code: 'SOLD_OUT', message: 'no tea' } }, { code: 'SOLD_OUT', message: 'no tea' }],
  [{ error: { code: 'out_of_stock', message: 'no tea' } }, { code: 'out_of_stock', message: 'no tea' }],
  [{ error: { code: 'SOLD_OUT', message: '' } }, { code: 'SOLD_OUT', message: 'SOLD_OUT' }],
  [{ error: { code: 'sold out!', message: 'no tea' } }, { code: 'HANDLER_ERROR', message: 'sold out!: no tea' }],
  [{ error: { code: `C${'X'.repeat(64)}`, message: '' } }, { code: 'HANDLER_ERROR', message: `C${'X'.repeat(64)}` }],
  [{ error: 'of another server' }, { code: 'HANDLER_ERROR', message: 'no tea' }],
  [undefined, { code: 'HANDLER_ERROR', message: 'no tea' }],
])('a failed task with the metadata %j has the code that its agent named', (metadata, error) => {
  expect(read({ result: task('failed', metadata && { metadata }, said(text('no tea'))) }).error).toEqual(error);
});
