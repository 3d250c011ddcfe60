import { expect, test } from 'vitest';
import { after, type Live, remedyOf } from '../../console/talk/turn.js';
import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';

const ids = { taskId: 'msg_1', contextId: 'ses_1' };
const task = (artifacts: Artifact[] = []): StreamEvent => ({
  ...{ kind: 'task', id: 'msg_1', contextId: 'ses_1', status: { state: 'working' }, artifacts },
});
const text = (said: string): Part => ({ kind: 'text', text: said });
const chunk = (artifactId: string, append: boolean, ...parts: Part[]): StreamEvent => ({
  ...{ kind: 'artifact-update', ...ids, artifact: { artifactId, parts }, append, lastChunk: false },
});
const status = (state: 'working' | 'completed' | 'input-required', final: boolean, more: object = {}): StreamEvent => ({
  ...{ kind: 'status-update', ...ids, status: { state, ...more }, final },
});
const saying = (said: string) => ({
  message: { kind: 'message' as const, messageId: 'm', role: 'agent' as const, parts: [text(said)] },
});
const all = (...events: StreamEvent[]) => events.reduce<Live | undefined>(after, undefined);
const artifactsAfter = (...events: StreamEvent[]) => all(...events)?.artifacts.map(({ parts }) => parts);

test('chunks of a text become one text, and other parts stay beside it', () => {
  const data: Part = { kind: 'data', data: { n: 1 } };
  const chunks = [chunk('a', false, text('12 ')), chunk('a', true, text('* 3')), chunk('a', true, data, text('!'))];
  expect(artifactsAfter(task(), ...chunks)).toEqual([[text('12 * 3'), data, text('!')]]);
});

test('an artifact that comes whole replaces what came of it, and no other', () => {
  const events = [chunk('a', false, text('one')), chunk('b', false, text('two')), chunk('a', false, text('new'))];
  expect(artifactsAfter(task(), ...events)).toEqual([[text('new')], [text('two')]]);
});

test('a task replaces everything, and a stream that begins in the middle says nothing', () => {
  const whole = { artifactId: 'a', parts: [text('whole')] };
  expect(artifactsAfter(task(), chunk('a', false, text('half')), task([whole]))).toEqual([[text('whole')]]);
  expect(all(chunk('a', true, text('x')))).toBeUndefined();
});

test('an answer that another agent begins anew drops what the one before said', () => {
  const restarted: StreamEvent = {
    ...{ kind: 'status-update', ...ids, status: { state: 'working' }, final: false, metadata: { restarted: true } },
  };
  expect(artifactsAfter(task(), chunk('a', false, text('half')), restarted)).toEqual([]);
});

test('what the agent says that it does stays until it says something else or ends', () => {
  const looks = [task(), status('working', false, saying('Looks'))];
  expect(all(...looks, status('working', false))).toMatchObject({ state: 'working', status: 'Looks', final: false });
  expect(all(...looks, status('completed', true))).toMatchObject({ state: 'completed', status: '', final: true });
  expect(all(...looks, status('input-required', true))).toMatchObject({ state: 'input-required', final: true });
});

test('each error has something to do next', () => {
  expect(remedyOf('TARGET_UNAVAILABLE')).toMatch(/Start an agent/);
  expect(remedyOf('OUT_OF_STOCK')).toMatch(/message page/);
});
