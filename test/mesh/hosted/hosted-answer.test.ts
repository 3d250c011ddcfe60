import { describe, expect, it } from 'vitest';
import { isSettled, readAnswer, resultOf } from '../../../mesh/hosted/answer.js';
import { HostedProgress } from '../../../mesh/hosted/progress.js';
import type { AnswerOrFailure } from '../../../messages/dispatch/dispatches.js';

const DISPATCH_ID = 'dsp_0198c7a4-0000-7000-8000-000000000001';
const UUID = '0198c7a4-0000-7000-8000-000000000001';

/** The outcome of a final JSON answer, as it goes to the database. */
function outcomeOfJson(body: unknown): AnswerOrFailure {
  const answer = readAnswer(JSON.stringify(body));
  if (answer.kind === 'result') return resultOf(answer.payload, [], DISPATCH_ID);
  if (answer.kind === 'task') {
    return resultOf({ result: answer.task, ...(answer.usage && { usage: answer.usage }) }, [], DISPATCH_ID);
  }
  throw new Error(`not final: ${JSON.stringify(answer)}`);
}

const rpc = (result: unknown, beside: object = {}): object => ({ jsonrpc: '2.0', id: '1', result, ...beside });
const text = (value: string) => ({ kind: 'text', text: value });
const task03 = (state: string, more: object = {}, message?: object) => ({
  kind: 'task',
  id: 't1',
  contextId: 'c1',
  status: { state, ...(message && { message }) },
  ...more,
});
const said03 = (...parts: object[]) => ({ kind: 'message', messageId: 'm1', role: 'agent', parts });
const ids = { remote_task_id: 't1', remote_context_id: 'c1' };
/** A message that is completed with these parts, in the artifact of the dispatch. */
const answered = (parts: object[], more: object = {}): object => ({
  state: 'completed',
  artifacts: [{ artifactId: UUID, parts }],
  ...more,
});
const asks = (input_request: object, more: object = ids): object => ({
  state: 'input-required',
  artifacts: [],
  input_request,
  ...more,
});

const OUTCOMES: [name: string, body: object, expected: object][] = [
  ['a 0.3 message', rpc(said03(text('hello'))), answered([text('hello')], { status_message: said03(text('hello')) })],
  [
    'a 1.0 message',
    rpc({ message: { messageId: 'm1', role: 'ROLE_AGENT', parts: [{ text: 'hello' }] } }),
    answered([text('hello')], { status_message: said03(text('hello')) }),
  ],
  [
    'a completed 0.3 task',
    rpc(task03('completed', { artifacts: [{ artifactId: 'a', parts: [text('done')] }], history: [{ odd: true }] })),
    { state: 'completed', artifacts: [{ artifactId: 'a', parts: [text('done')] }], ...ids },
  ],
  [
    'a completed 1.0 task with every kind of part',
    rpc({
      task: {
        id: 't1',
        contextId: 'c1',
        status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00Z' },
        artifacts: [
          {
            artifactId: 'a',
            parts: [
              { text: 'done' },
              { data: { n: 1 }, metadata: { m: 1 } },
              { data: 7 },
              { url: 'https://example.com/a.png', mediaType: 'image/png', filename: 'a.png' },
              { raw: 'aGk=', filename: '', mediaType: '' },
            ],
          },
        ],
      },
    }),
    {
      state: 'completed',
      artifacts: [
        {
          artifactId: 'a',
          parts: [
            text('done'),
            { kind: 'data', data: { n: 1 }, metadata: { m: 1 } },
            { kind: 'data', data: { value: 7 } },
            { kind: 'file', file: { uri: 'https://example.com/a.png', mimeType: 'image/png', name: 'a.png' } },
            { kind: 'file', file: { bytes: 'aGk=' } },
          ],
        },
      ],
      ...ids,
    },
  ],
  [
    'a rejected 1.0 task',
    rpc({ task: { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_REJECTED' } } }),
    {
      state: 'failed',
      artifacts: [],
      error: { code: 'HANDLER_ERROR', message: 'The agent ended its task in the state rejected.' },
      ...ids,
    },
  ],
  [
    'a question in plain text, which is answered by text',
    rpc(task03('input-required', {}, said03(text('Where to?')))),
    asks({ kind: 'form', prompt: 'Where to?' }),
  ],
  [
    'a 1.0 task that wants to be authorised, without a word',
    rpc({ task: { id: 't1', status: { state: 'TASK_STATE_AUTH_REQUIRED' } } }),
    asks({ kind: 'form' }, { remote_task_id: 't1' }),
  ],
  [
    'a 0.3 task that writes null for what it leaves out',
    rpc({
      ...task03('completed'),
      history: null,
      metadata: null,
      status: {
        state: 'completed',
        timestamp: null,
        message: { ...said03({ ...text('done'), metadata: null }), taskId: null },
      },
      artifacts: [
        {
          artifactId: 'a',
          name: null,
          description: null,
          metadata: null,
          parts: [
            { ...text('x'), metadata: null },
            { kind: 'file', file: { uri: 'http://a/', bytes: null, name: null }, metadata: null },
            { kind: 'data', data: { kept: null }, metadata: null },
          ],
        },
      ],
    }),
    {
      state: 'completed',
      artifacts: [
        {
          artifactId: 'a',
          parts: [text('x'), { kind: 'file', file: { uri: 'http://a/' } }, { kind: 'data', data: { kept: null } }],
        },
      ],
      status_message: said03(text('done')),
      ...ids,
    },
  ],
  [
    'a 1.0 message that writes null for what it leaves out',
    rpc({
      task: null,
      message: {
        messageId: 'm1',
        role: 'ROLE_AGENT',
        contextId: null,
        parts: [
          { text: 'hello', raw: null, url: null, data: null, mediaType: null },
          { text: null, url: 'http://a/', data: null, filename: null },
          { text: null, data: 5 },
          { data: null },
        ],
      },
    }),
    answered([
      text('hello'),
      { kind: 'file', file: { uri: 'http://a/' } },
      { kind: 'data', data: { value: 5 } },
      { kind: 'data', data: { value: null } },
    ]),
  ],
  ['plain text', rpc('hello'), answered([text('hello')])],
  [
    'any other object, with usage and an unrelated status beside it',
    rpc({ answer: 42 }, { status: 'ok', usage: { input_tokens: 1, output_tokens: 2 } }),
    answered([{ kind: 'data', data: { answer: 42 } }], { usage: { input_tokens: 1, output_tokens: 2 } }),
  ],
  [
    'usage in the metadata of a task',
    rpc(task03('completed', { metadata: { usage: { input_tokens: 3, output_tokens: 4, model: 'm' } } })),
    { state: 'completed', artifacts: [], usage: { input_tokens: 3, output_tokens: 4, model: 'm' }, ...ids },
  ],
  [
    'metadata that calls something else usage',
    rpc(task03('completed', { metadata: { usage: { prompt_tokens: 1 } } })),
    { state: 'completed', artifacts: [], ...ids },
  ],
  ['text with half a surrogate pair', rpc('a\ud800'), answered([text('a\ufffd')])],
];

describe('the outcome of a final answer', () => {
  it.each(OUTCOMES)('%s', (_name, body, expected) => {
    const outcome = outcomeOfJson(body);
    expect(outcome).toMatchObject(expected);
    expect(outcome.remote_task_id).toBe((expected as AnswerOrFailure).remote_task_id);
    expect(outcome.remote_context_id).toBe((expected as AnswerOrFailure).remote_context_id);
  });
});

const deep = `${'['.repeat(40)}${']'.repeat(40)}`;
const GARBAGE: [name: string, text: string, problem: string][] = [
  ['no JSON', '<html>', 'is not JSON'],
  ['nothing', '', 'is not JSON'],
  ['null', 'null', 'has neither result nor error'],
  ['an array', '[]', 'has neither result nor error'],
  ['no result', '{"jsonrpc":"2.0","id":1}', 'has neither result nor error'],
  ['a number for a result', '{"result":5}', 'does not fit A2A at result'],
  [
    'a task without a state',
    '{"result":{"kind":"task","id":"t","contextId":"c","status":{}}}',
    'does not fit A2A at status.state',
  ],
  [
    'a message without parts',
    '{"result":{"kind":"message","messageId":"m","role":"agent"}}',
    'does not fit A2A at parts',
  ],
  ['usage that is none', '{"result":"hi","usage":{"input_tokens":-1}}', 'does not fit A2A at usage.input_tokens'],
  ['a prototype key', '{"result":{"__proto__":{"a":1}}}', 'holds the key __proto__'],
  ['NUL', '{"result":"a\\u0000b"}', 'holds a NUL character'],
  ['deep nesting', `{"result":{"a":${deep}}}`, 'is nested deeper than 32'],
];

describe('an answer that is none', () => {
  it.each(GARBAGE)('%s', (_name, body, problem) => {
    expect(readAnswer(body)).toEqual({ kind: 'invalid', problem });
  });
});

describe('other answers', () => {
  it('reads a JSON-RPC error', () => {
    const error = { code: -32602, message: 'no parts', data: { at: 1 } };
    expect(readAnswer(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))).toEqual({ kind: 'error', ...error });
  });

  it('reads updates of both versions alike', () => {
    const of = { taskId: 't1', contextId: 'c1' };
    const read = (update: object) => readAnswer(JSON.stringify(rpc(update)));
    const working = { statusUpdate: { ...of, status: { state: 'TASK_STATE_WORKING' } } };
    const status = { kind: 'status-update', ...of, status: { state: 'working' }, final: false };
    expect(read(status)).toEqual(read(working));
    const appended = (parts: object[]) => ({ ...of, artifact: { artifactId: 'a', parts }, append: true });
    const artifactUpdate = appended([{ text: 'x' }]);
    expect(read({ kind: 'artifact-update', ...appended([text('x')]) })).toEqual(read({ artifactUpdate }));
  });

  it('keeps the usage that a last status brings', () => {
    const usage = { input_tokens: 3, output_tokens: 4 };
    const status = { taskId: 't1', contextId: 'c1', status: { state: 'completed' }, final: true };
    const answer = readAnswer(JSON.stringify(rpc({ kind: 'status-update', ...status, metadata: { usage } })));
    const update = new HostedProgress(UUID, () => undefined).take(answer, 'stream');
    expect(update).toMatchObject({ kind: 'final', payload: { usage } });
  });

  it('passes over events of a later version', () => {
    expect(readAnswer(JSON.stringify(rpc({ kind: 'thought-update', thought: 'hm' })))).toEqual({ kind: 'other' });
  });

  it('waits on in the states that are not settled', () => {
    const waiting = ['submitted', 'working', 'unknown'] as const;
    const settled = ['completed', 'failed', 'canceled', 'rejected', 'input-required', 'auth-required'] as const;
    expect(waiting.map(isSettled)).toEqual([false, false, false]);
    expect(settled.every(isSettled)).toBe(true);
  });
});
