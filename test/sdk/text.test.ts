import { expect, test } from 'vitest';
import type { Part, StreamEvent, Task } from '../../sdk/index.js';
import { TaskFailedError, textOf, textStream } from '../../sdk/index.js';

const text = (value: string): Part => ({ kind: 'text', text: value });
const data: Part = { kind: 'data', data: { a: 1 } };
const of = { taskId: 'msg_1', contextId: 'ses_1' };
const artifact = (artifactId: string, parts: Part[], append = false): StreamEvent => ({
  ...of,
  kind: 'artifact-update',
  artifact: { artifactId, parts },
  append,
});
const task = (state: Task['status']['state'], more: Partial<Task> = {}, said?: string): Task => ({
  kind: 'task',
  id: 'msg_1',
  contextId: 'ses_1',
  status: {
    state,
    ...(said && { message: { kind: 'message', messageId: 'm', role: 'agent', parts: [text(said)] } }),
  },
  ...more,
});
const ended = (state: Task['status']['state'], said?: string, metadata?: Record<string, unknown>): StreamEvent => ({
  ...of,
  kind: 'status-update',
  status: task(state, {}, said).status,
  final: true,
  ...(metadata && { metadata }),
});

async function* from(events: StreamEvent[]) {
  yield* events;
}

async function piecesOf(...events: StreamEvent[]): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of textStream(from(events))) pieces.push(piece);
  return pieces;
}

test.each<[string, StreamEvent[], string[]]>([
  ['pieces that are appended', [artifact('a', [text('one ')]), artifact('a', [text('two')], true)], ['one ', 'two']],
  [
    'the whole artifact again at the end',
    [artifact('a', [text('one ')]), artifact('a', [text('two')], true), artifact('a', [text('one two')])],
    ['one ', 'two'],
  ],
  [
    'the whole artifact with more at the end',
    [artifact('a', [text('one')]), artifact('a', [text('one two')])],
    ['one', ' two'],
  ],
  ['a replacement that is shorter', [artifact('a', [text('one two')]), artifact('a', [text('one')])], ['one two']],
  [
    'a replacement that says something else',
    [artifact('a', [text('draft')]), artifact('a', [text('end')])],
    ['draft', '\nend'],
  ],
  ['another artifact', [artifact('a', [text('one')]), artifact('b', [text('two')])], ['one', '\ntwo']],
  [
    'text after data',
    [artifact('a', [text('one')]), artifact('a', [data], true), artifact('a', [text('two')], true)],
    ['one', '\ntwo'],
  ],
  [
    'the task after a gap',
    [artifact('a', [text('one')]), task('working', { artifacts: [{ artifactId: 'a', parts: [text('one two')] }] })],
    ['one', ' two'],
  ],
  ['no text but that of the question', [task('working'), ended('input-required', 'Sure?')], ['Sure?']],
  ['a question after text', [artifact('a', [text('one')]), ended('input-required', 'Sure?')], ['one']],
])('textStream: %s', async (_what, events, pieces) => {
  expect(await piecesOf(...events)).toEqual(pieces);
});

test('textStream throws when the task fails', async () => {
  const error = { error: { code: 'HANDLER_ERROR', message: 'no luck' } };
  const failing = piecesOf(artifact('a', [text('one')]), ended('failed', 'no luck', error));
  await expect(failing).rejects.toBeInstanceOf(TaskFailedError);
  await expect(failing).rejects.toMatchObject({
    code: 'HANDLER_ERROR',
    message: 'no luck',
    taskId: 'msg_1',
    state: 'failed',
  });
  await expect(piecesOf(ended('canceled'))).rejects.toMatchObject({ code: 'canceled' });
});

test('textOf reads tasks, artifacts, messages and parts', () => {
  const artifacts = [
    { artifactId: 'a', parts: [text('one'), data, text('two')] },
    { artifactId: 'b', parts: [data] },
    { artifactId: 'c', parts: [text('three')] },
  ];
  expect(textOf(task('completed', { artifacts }))).toBe('one\ntwo\nthree');
  expect(textOf(task('input-required', {}, 'Sure?'))).toBe('Sure?');
  expect(textOf(artifacts[0] ?? [])).toBe('one\ntwo');
  expect(textOf([text('one'), text('two')])).toBe('one\ntwo');
  expect(textOf(task('completed'))).toBe('');
});
