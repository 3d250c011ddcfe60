import { describe, expect, it } from 'vitest';
import type { Artifact } from '../../contracts/a2a/parts.js';
import { DispatchResultPayload } from '../../contracts/frames.js';
import { toAgentResult } from '../../mesh/connected/agent-result.js';

const UUID = '0198c7a4-0000-7000-8000-000000000001';
const text = (value: string) => ({ kind: 'text' as const, text: value });
const own = (...parts: Artifact['parts']): Artifact => ({ artifactId: UUID, parts });
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

const ANSWERS: [name: string, result: unknown, streamed: Artifact[], expected: object][] = [
  ['a string', 'hi', [], { state: 'completed', artifacts: [own(text('hi'))] }],
  ['an empty string', '', [], { state: 'completed', artifacts: [] }],
  ['a string that repeats the stream', 'hi', [own(text('hi'))], { artifacts: [own(text('hi'))] }],
  [
    'a string beside a stream',
    'done',
    [own(text('a'))],
    { artifacts: [own(text('a')), { artifactId: `${UUID}:result`, parts: [text('done')] }] },
  ],
  ['an object', { n: 1 }, [], { state: 'completed', artifacts: [own({ kind: 'data', data: { n: 1 } })] }],
  ['an empty object after a stream', {}, [own(text('a'))], { artifacts: [own(text('a'))] }],
  [
    'an object of a kind of its own',
    { kind: 'invoice' },
    [],
    { artifacts: [own({ kind: 'data', data: { kind: 'invoice' } })] },
  ],
  ['a message', said(text('hi')), [], { artifacts: [own(text('hi'))], status_message: said(text('hi')) }],
  [
    'a message after a stream',
    said(text('bye')),
    [own(text('a'))],
    { artifacts: [own(text('a'))], status_message: said(text('bye')) },
  ],
  [
    'a task with artifacts, which are the whole answer',
    task('completed', { artifacts: [{ artifactId: 'x', parts: [text('b')] }] }),
    [own(text('a'))],
    {
      state: 'completed',
      artifacts: [{ artifactId: 'x', parts: [text('b')] }],
      remote_task_id: 't',
      remote_context_id: 'c',
    },
  ],
  ['a task after a stream', task('completed'), [own(text('a'))], { state: 'completed', artifacts: [own(text('a'))] }],
];

describe('what an agent answers', () => {
  it.each(ANSWERS)('is read: %s', (_name, result, streamed, expected) => {
    expect(read({ result }, streamed)).toMatchObject(expected);
  });

  it.each([
    ['completed', 'completed'],
    ['input-required', 'input-required'],
    ['auth-required', 'input-required'],
    ['failed', 'failed'],
    ['rejected', 'failed'],
    ['canceled', 'failed'],
    ['working', 'failed'],
    ['submitted', 'failed'],
    ['unknown', 'failed'],
  ])('has the state of its task: %s is %s', (state, expected) => {
    expect(read({ result: task(state) }).state).toBe(expected);
  });

  it('has the state that the status says, whatever the task says', () => {
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
    expect(read({ result: '', status: { state: 'input-required', input_request } }).input_request).toEqual(
      input_request,
    );
    const message = said(text('?'), { kind: 'data', data: { input_request } });
    expect(read({ result: task('input-required', {}, message) }).input_request).toEqual(input_request);
    expect(read({ result: task('completed', {}, message) }).input_request).toBeUndefined();
    const malformed = said({ kind: 'data', data: { input_request: { kind: 'riddle' } } });
    expect(read({ result: task('input-required', {}, malformed) })).toMatchObject({
      state: 'failed',
      error: { code: 'HANDLER_ERROR', message: expect.stringContaining('input_request.kind') },
    });
  });

  it.each([
    ['a task', { kind: 'task' }],
    ['a task whose status is null', task('completed', { status: null })],
    ['a message', { kind: 'message', parts: [] }],
    ['a message in another dialect', said({ type: 'text', text: 'x' })],
  ])('is none where it only calls itself %s', (_name, result) => {
    expect(DispatchResultPayload.safeParse({ result }).success).toBe(false);
  });

  it('tells what it used', () => {
    const usage = { input_tokens: 1, output_tokens: 2, model: 'm' };
    expect(read({ result: 'x', usage }).usage).toEqual(usage);
  });
});

it.each([
  [{ error: { code: 'AGENT_BUSY', message: 'later' } }, { code: 'AGENT_BUSY', message: 'later' }],
  [{ error: { code: 'SOLD_OUT', message: 'no tea' } }, { code: 'HANDLER_ERROR', message: 'SOLD_OUT: no tea' }],
  [{ error: 'of another server' }, { code: 'HANDLER_ERROR', message: 'no tea' }],
  [undefined, { code: 'HANDLER_ERROR', message: 'no tea' }],
])('a failed task with the metadata %j has the code that its agent named', (metadata, error) => {
  const message = { kind: 'message', messageId: 'm', role: 'agent', parts: [text('no tea')] };
  expect(read({ result: task('failed', metadata && { metadata }, message) }).error).toEqual(error);
});
