import { expect, test } from 'vitest';
import type { StreamEvent, Task } from '../../contracts/a2a/a2a.js';
import {
  dataOf,
  type MessageRecord,
  type Part,
  TaskFailedError,
  TaskNotEndedError,
  textOf,
  textStream,
  z,
} from '../../sdk/index.js';

const text = (value: string): Part => ({ kind: 'text', text: value });
const data: Part = { kind: 'data', data: { a: 1 } };
const of = { taskId: 'msg_1', contextId: 'ses_1' };
const artifact = (artifactId: string, parts: Part[], append = false): StreamEvent => ({
  ...of,
  kind: 'artifact-update',
  artifact: { artifactId, parts },
  append,
});
const said = (value: string, append = false): StreamEvent => artifact('a', [text(value)], append);
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

const restarted: StreamEvent = {
  ...of,
  kind: 'status-update',
  status: { state: 'working' },
  final: false,
  metadata: { restarted: true },
};

async function* from(events: StreamEvent[]) {
  yield* events;
}

async function piecesOf(...events: StreamEvent[]): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of textStream(from(events))) pieces.push(piece);
  return pieces;
}

test.each<[string, StreamEvent[], string[]]>([
  ['pieces that are appended', [said('one '), said('two', true)], ['one ', 'two']],
  ['the whole artifact again at the end', [said('one '), said('two', true), said('one two')], ['one ', 'two']],
  ['the whole artifact with more at the end', [said('one'), said('one two')], ['one', ' two']],
  ['a replacement that is shorter', [said('one two'), said('one')], ['one two']],
  ['a replacement that says something else', [said('draft'), said('end')], ['draft', '\nend']],
  ['another artifact', [said('one'), artifact('b', [text('two')])], ['one', '\ntwo']],
  ['text after data', [said('one'), artifact('a', [data], true), said('two', true)], ['one', '\ntwo']],
  [
    'the task after a gap',
    [said('one'), task('working', { artifacts: [{ artifactId: 'a', parts: [text('one two')] }] })],
    ['one', ' two'],
  ],
  ['no text but that of the status', [task('working'), ended('completed', 'Sold.')], ['Sold.']],
  [
    'the answer after a question',
    [said('one'), ended('input-required', 'Sure?'), task('working'), said('one two')],
    ['one', ' two'],
  ],
  [
    'a run that repeats what a lost one has said',
    [said('v1'), restarted, artifact('b', [text('v')]), artifact('b', [text('1 v2')], true)],
    ['v1', ' v2'],
  ],
  [
    'a run that says something else than a lost one',
    [said('v1.0'), restarted, artifact('b', [text('v1.1')])],
    ['v1.0', '\nv1.1'],
  ],
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

test('textStream tells of a run that starts anew, where it is asked to', async () => {
  const pieces: string[] = [];
  const events = from([artifact('a', [text('v1')]), restarted, artifact('b', [text('v1 v2')])]);
  for await (const piece of textStream(events, { onRestart: () => pieces.push('anew') })) pieces.push(piece);
  expect(pieces).toEqual(['v1', 'anew', 'v1 v2']);
});

test('a question and an error are never taken for the answer', async () => {
  const asked = { name: 'TaskNotEndedError', taskId: 'msg_1', state: 'input-required', text: 'Sure?' };
  await expect(piecesOf(task('working'), ended('input-required', 'Sure?'))).rejects.toMatchObject(asked);
  const question = task('input-required', {}, 'Sure?');
  expect(() => textOf(question)).toThrow(expect.objectContaining(asked));
  expect(() => textOf(task('working'))).toThrow(TaskNotEndedError);
  const metadata = { error: { code: 'HANDLER_ERROR' } };
  expect(() => textOf(task('failed', { metadata }, 'no luck'))).toThrow(
    expect.objectContaining({ name: 'TaskFailedError', code: 'HANDLER_ERROR', message: 'no luck' }),
  );
  const record = { messageId: 'msg_1', state: 'completed', assistantOutput: 'one' } as MessageRecord;
  expect(textOf(record)).toBe('one');
  expect(() => textOf({ ...record, state: 'failed', error: { code: 'NO_LUCK', message: 'no luck' } })).toThrow(
    expect.objectContaining({ code: 'NO_LUCK' }),
  );
  expect(() => textOf({ ...record, state: 'input-required' })).toThrow(TaskNotEndedError);
});

test('dataOf reads the data of an answer', () => {
  const answer = task('completed', { artifacts: [{ artifactId: 'a', parts: [text('one'), data] }] });
  expect(dataOf(answer)).toEqual({ a: 1 });
  expect(dataOf(answer, z.object({ a: z.int() })).a).toBe(1);
  expect(() => dataOf(task('completed'))).toThrow('the answer has no data part');
  expect(() => dataOf(task('working'))).toThrow(TaskNotEndedError);
});

test('textOf reads tasks, artifacts, messages and parts', () => {
  const artifacts = [
    { artifactId: 'a', parts: [text('one'), data, text('two')] },
    { artifactId: 'b', parts: [data] },
    { artifactId: 'c', parts: [text('three')] },
  ];
  expect(textOf(task('completed', { artifacts }))).toBe('one\ntwo\nthree');
  expect(textOf(artifacts[0] ?? [])).toBe('one\ntwo');
  expect(textOf([text('one'), text('two')])).toBe('one\ntwo');
  expect(textOf(task('completed'))).toBe('');
});
