import { describe, expect, test } from 'vitest';
import type { A2aMessage, Task, TaskState } from '../../../contracts/a2a/a2a.js';
import { sendResultTo1 } from '../../../contracts/a2a/a2a-1-results.js';
import type { Artifact, Part } from '../../../contracts/a2a/parts.js';
import type { DispatchResultPayload } from '../../../contracts/frames.js';
import { toAgentResult } from '../../../mesh/connected/agent-result.js';

const DISPATCH = 'dsp_01a1fe7b-6c1e-7bd3-9b6b-4a5ff6f1a0e5';
const SAID: Part[] = [{ kind: 'text', text: 'Hello.' }];
const MESSAGE: A2aMessage = { kind: 'message', messageId: 'm1', role: 'agent', parts: SAID };

/** The platform's task after an agent's answer. */
function taskAfter(result: DispatchResultPayload['result'], streamed: Artifact[] = []): Task {
  const { state, artifacts, status_message: message } = toAgentResult({ result }, streamed, DISPATCH);
  const status = { state: state as TaskState, ...(message && { message }) };
  return { kind: 'task', id: 'msg_1', contextId: 'ses_1', status, artifacts };
}

const taskOf = (state: TaskState, artifacts?: Artifact[]): Task => ({
  ...{ kind: 'task', id: 'remote-1', contextId: 'c1', status: { state, message: MESSAGE } },
  ...(artifacts && { artifacts }),
});

describe('the result of SendMessage', () => {
  test('is a message where the agent answered with one', () => {
    const of = { taskId: 'msg_1', contextId: 'ses_1' };
    const message = { messageId: 'm1', role: 'ROLE_AGENT', parts: [{ text: 'Hello.' }], ...of };
    expect(sendResultTo1(taskAfter(MESSAGE))).toEqual({ message });
  });

  test.each<[string, Task]>([
    ['with text', taskAfter('Hello.')],
    ['with an object', taskAfter({ answer: 42 })],
    ['with a message without parts', taskAfter({ ...MESSAGE, parts: [] })],
    ['with a message, after artifacts', taskAfter(MESSAGE, [{ artifactId: 'a', parts: SAID }])],
    ['with a task', taskAfter(taskOf('completed'))],
    ['with a task that repeats its artifact', taskAfter(taskOf('completed', [{ artifactId: 'a', parts: SAID }]))],
    ['with a task that failed', taskAfter(taskOf('failed'))],
    ['with a question', taskAfter(taskOf('input-required'))],
  ])('is a task where the agent answered %s', (_what, task) => {
    expect(sendResultTo1(task)).toEqual({ task: expect.objectContaining({ id: 'msg_1', contextId: 'ses_1' }) });
  });
});
