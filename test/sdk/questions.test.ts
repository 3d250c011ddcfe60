import { expect, test } from 'vitest';
import type { DispatchPayload, DispatchResultPayload } from '../../contracts/frames.js';
import type { AgentTask, Question } from '../../sdk/handlers/agent-task.js';
import { runDispatch } from '../../sdk/handlers/run-dispatch.js';
import { TaskOutput } from '../../sdk/handlers/task-output.js';
import { SILENT_LOG, z } from '../../sdk/index.js';

interface Human {
  resolution: string;
  data?: Record<string, unknown>;
  comment?: string;
}

/** Runs a handler as the platform does: once, and again with all answers whenever a human has answered. */
async function conversation(handler: (task: AgentTask) => unknown, humans: Human[], given: object[] = []) {
  const resolutions: object[] = [...given];
  const asked: { title: string; prompt: string; schema?: object }[] = [];
  let runs = 0;
  for (;;) {
    runs += 1;
    const last = resolutions.at(-1);
    const frame = await runDispatch(
      {
        dispatch: {
          params: { message: { parts: [] }, ...(last && { metadata: { resolution: last, resolutions } }) },
          session_context: {},
        } as unknown as DispatchPayload,
        output: new TaskOutput('dsp_1', async () => undefined, new AbortController().signal),
        signal: new AbortController().signal,
      },
      {
        runTask: (task) => ({ handler: 'onMessage', result: async () => handler(task as AgentTask) }),
        tools: {} as never,
        log: SILENT_LOG,
      },
    );
    const { status, result } = frame.payload as DispatchResultPayload;
    if (status?.state !== 'input-required') {
      const [artifact] = (result as { artifacts?: { parts: { text: string }[] }[] } | undefined)?.artifacts ?? [];
      return { runs, asked, frame, text: artifact?.parts[0]?.text };
    }
    const question = status.input_request as (typeof asked)[0] & { kind: string };
    asked.push(question);
    const human = humans.shift();
    if (!human) throw new Error('nobody is there to answer');
    const { kind, title } = question;
    resolutions.push({ request_id: `req_${resolutions.length}`, source: 'agent', kind, title, ...human });
  }
}

const confirm = (title: string) => ({ kind: 'confirmation' as const, title, prompt: `${title}!` });
const yes: Human = { resolution: 'confirmed' };
const no: Human = { resolution: 'declined', comment: 'not today' };

test('awaited questions are asked one by one; earlier answers are replayed, and what is before them runs again', async () => {
  const before: string[] = [];
  const { runs, asked, text } = await conversation(
    async (task) => {
      before.push('start');
      const first = await task.ask(confirm('Begin?'));
      const second = await task.ask(confirm('End?'));
      return `${first.accepted} ${second.accepted} ${second.comment}`;
    },
    [yes, no],
  );
  expect(asked.map(({ title }) => title)).toEqual(['Begin?', 'End?']);
  expect({ runs, text, before: before.length }).toEqual({ runs: 3, text: 'true false not today', before: 3 });
});

test('the same question may be asked again and again: each time has its own answer', async () => {
  const { asked, text } = await conversation(
    async (task) => {
      let rounds = 0;
      while ((await task.ask(confirm('Once more?'))).accepted) rounds += 1;
      return String(rounds);
    },
    [yes, yes, yes, no],
  );
  expect([asked.length, text]).toEqual([4, '3']);
});

test('questions that are asked at once are answered one after the other', async () => {
  const { asked, text } = await conversation(
    async (task) => {
      const answers = await Promise.all([task.ask(confirm('Left?')), task.ask(confirm('Right?'))]);
      return answers.map(({ resolution }) => resolution).join();
    },
    [yes, no],
  );
  expect([asked.map(({ title }) => title), text]).toEqual([['Left?', 'Right?'], 'confirmed,declined']);
});

test('nothing after an open question runs, and a catch around it sees nothing', async () => {
  const seen: string[] = [];
  await conversation(
    async (task) => {
      try {
        await task.ask(confirm('Really?'));
        seen.push('answered');
      } catch {
        seen.push('caught');
      } finally {
        seen.push('finally');
      }
      return 'done';
    },
    [yes],
  );
  expect(seen).toEqual(['answered', 'finally']);
});

test('a returned question is asked, also again under the same title', async () => {
  const handler = async (task: AgentTask) => {
    if (!task.resolution?.accepted) return task.ask(confirm('Agreed?'));
    return `after ${task.resolutions.length}`;
  };
  const { asked, text } = await conversation(handler, [no, no, yes]);
  expect([asked.length, text]).toEqual([3, 'after 3']);
});

test('a form of zod is asked as JSON Schema, and its values come typed', async () => {
  const order = z.object({ tea: z.enum(['green', 'black']), grams: z.int().min(50).default(100) });
  const { asked, text } = await conversation(
    async (task) => {
      const form = await task.ask({ kind: 'form', title: 'Order', prompt: 'Which tea?', schema: order });
      if (!form.accepted) return 'nothing';
      const grams: number = form.data.grams;
      return `${grams} g of ${form.data.tea satisfies 'green' | 'black'} tea`;
    },
    [{ resolution: 'submitted', data: { tea: 'green' } }],
  );
  expect(asked[0]?.schema).toMatchObject({
    type: 'object',
    required: ['tea'],
    properties: { tea: { enum: ['green', 'black'] }, grams: { type: 'integer' } },
  });
  expect(text).toBe('100 g of green tea');
});

test('values that only zod refuses are asked for again, with the reason', async () => {
  const schema = z.object({ mail: z.string().refine((text) => text.includes('@'), 'must be an address') });
  const { asked, text } = await conversation(
    async (task) => {
      const form = await task.ask({ kind: 'form', title: 'Mail', prompt: 'Where to?', schema });
      return form.accepted ? form.data.mail : 'nowhere';
    },
    [
      { resolution: 'submitted', data: { mail: 'here' } },
      { resolution: 'submitted', data: { mail: 'a@b.c' } },
    ],
  );
  expect(asked).toHaveLength(2);
  expect(asked[1]?.prompt).toMatch(/^Where to\?\n\nThe values did not fit\. [\s\S]*must be an address/);
  expect(text).toBe('a@b.c');
});

test('what policies asked is no answer to a question of the agent, but among the resolutions', async () => {
  const policy = { request_id: 'req_p', resolution: 'approved', source: 'policy', kind: 'approval', title: 'Begin?' };
  const { asked, text } = await conversation(
    async (task) => {
      if (!task.resolution) return task.ask({ ...confirm('Begin?'), kind: 'approval' });
      return `${task.resolution.resolution}, ${task.resolutions.map(({ source }) => source).join()}`;
    },
    [{ resolution: 'rejected' }],
    [policy],
  );
  expect([asked.length, text]).toEqual([1, 'rejected, policy,agent']);
});

test('a platform that sends one answer alone is understood', async () => {
  const { text } = await conversation(
    async (task) => (await task.ask(confirm('Old?'))).resolution,
    [],
    [{ request_id: 'req_0', resolution: 'confirmed' }],
  );
  expect(text).toBe('confirmed');
});

test.each<[string, (task: AgentTask) => unknown]>([
  ['stands alone', (task) => void task.ask(confirm('Delete?'))],
  ['is a condition', (task) => ((task.ask(confirm('Delete?')) as unknown) ? 'deleted' : 'kept')], // TypeScript refuses it otherwise
  [
    'comes before one that is awaited and answered',
    async (task) => {
      task.ask(confirm('Delete?'));
      return `${(await task.ask(confirm('Sure?'))).accepted}`;
    },
  ],
])('a question that %s fails the task, which says what to write', async (_what, handler) => {
  const { frame, asked } = await conversation(handler, [yes]);
  expect(frame).toEqual({
    type: 'error',
    payload: { code: 'HANDLER_ERROR', message: expect.stringMatching(/“Delete\?”.*await task\.ask/), retryable: false },
  });
  expect(asked.map(({ title }) => title)).not.toContain('Delete?');
});

test('a question that is copied into the result was not forgotten, nor is one that a later run awaits', async () => {
  const copied = await conversation(
    (task) =>
      task.resolution
        ? 'done'
        : Object.assign({}, task.ask(confirm('Delete?')), { usage: { inputTokens: 1, outputTokens: 1 } }),
    [yes],
  );
  expect([copied.asked.length, copied.text]).toEqual([1, 'done']);
  const later = await conversation(
    async (task) => {
      const [first, second] = [task.ask(confirm('One?')), task.ask(confirm('Two?'))];
      return `${(await first).accepted} ${(await second).accepted}`;
    },
    [yes, no],
  );
  expect(later.text).toBe('true false');
});

test.each<[string, Partial<Question>, string]>([
  [
    'schema is no object',
    { schema: { type: 'array' } },
    'the schema of the form “Order” is not valid: type must be object',
  ],
  [
    'schema nests',
    { schema: { properties: { a: { type: 'object', properties: {} } } } },
    'is not valid: properties.a: the form must be flat',
  ],
  [
    'choice has no options',
    { fields: [{ id: 'size', type: 'choice' }] },
    'the field size of the form “Order” is a choice',
  ],
])('a form whose %s fails the task with the reason, and nobody is asked', async (_what, form, reason) => {
  const question = { kind: 'form' as const, title: 'Order', prompt: 'Which?', ...form };
  for (const handler of [
    async (task: AgentTask) => (await task.ask(question)).resolution,
    () => ({ state: 'input-required', question }),
  ]) {
    const { frame, asked } = await conversation(handler, [yes]);
    expect(frame).toMatchObject({ type: 'error', payload: { message: expect.stringContaining(reason) } });
    expect(asked).toEqual([]);
  }
});
