import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Annotation, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { expect, test, vi } from 'vitest';
import type { TaskResolution } from '../../index.js';
import { graphHandler } from '../langgraph.js';
import { answered, joined, resultOf } from './joined.js';

const textOf = (text: string) => ({ result: { artifacts: [{ parts: [{ kind: 'text', text }] }] } });

test('the text of the models streams, and the session is the thread', async () => {
  const model = new FakeListChatModel({ responses: ['one', 'two'] });
  const seen: string[][] = [];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('chat', async ({ messages }) => {
      seen.push(messages.map(({ text }) => text));
      return { messages: [await model.invoke(messages)] };
    })
    .addEdge(START, 'chat')
    .addEdge('chat', END)
    .compile({ checkpointer: new MemorySaver() });
  const mesh = await joined(graphHandler(graph));
  const first = mesh.dispatch('a');
  expect(await resultOf(mesh, first)).toMatchObject({ chunk_count: 3, ...textOf('one') });
  expect(await resultOf(mesh, mesh.dispatch('b', { messageId: 'msg_2' }))).toMatchObject(textOf('two'));
  expect(seen).toEqual([['a'], ['a', 'one', 'b']]);
});

const Refund = Annotation.Root({
  order: Annotation<string>,
  notes: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
});
/** A graph that asks twice, and counts how often its first step ran. */
function refunds(checkpointer: MemorySaver, ran: () => void) {
  const ask = (name: string) => () => {
    const answer: TaskResolution = interrupt({ kind: 'approval', title: name, prompt: `May I ${name}?` });
    return { notes: [`${name}: ${answer.resolution} ${answer.comment ?? ''}`.trim()] };
  };
  return new StateGraph(Refund)
    .addNode('look', () => {
      ran();
      return { notes: ['looked'] };
    })
    .addNode('refund', ask('refund'))
    .addNode('tell', ask('tell'))
    .addEdge(START, 'look')
    .addEdge('look', 'refund')
    .addEdge('refund', 'tell')
    .addEdge('tell', END)
    .compile({ checkpointer });
}
const options = { input: ({ text }: { text: string }) => ({ order: text }) };

test('an interrupt is a question, and its answer resumes the graph in another process, which has the checkpoints', async () => {
  const checkpoints = new MemorySaver();
  const ran = vi.fn();
  const mesh = await joined(graphHandler(refunds(checkpoints, ran), options));
  expect(await resultOf(mesh, mesh.dispatch('o-1'))).toMatchObject({
    status: { state: 'input-required', input_request: { kind: 'approval', title: 'refund', prompt: 'May I refund?' } },
  });
  const elsewhere = await joined(graphHandler(refunds(checkpoints, ran), options));
  const one = { title: 'refund', kind: 'approval', resolution: 'approved', comment: 'fine' };
  expect(await resultOf(elsewhere, elsewhere.dispatch('o-1', answered(one)))).toMatchObject({
    status: { input_request: { title: 'tell' } },
  });
  // The same dispatch again, after its agent was lost: the first answer is not taken for the second question.
  expect(await resultOf(elsewhere, elsewhere.dispatch('o-1', answered(one)))).toMatchObject({
    status: { input_request: { title: 'tell' } },
  });
  const both = answered(one, { title: 'tell', kind: 'approval', resolution: 'rejected' });
  const notes = ['looked', 'refund: approved fine', 'tell: rejected'];
  const done = { result: { artifacts: [{ parts: [{ kind: 'data', data: { order: 'o-1', notes } }] }] } };
  expect(await resultOf(mesh, mesh.dispatch('o-1', both))).toMatchObject(done);
  expect(ran).toHaveBeenCalledOnce();
  expect(await resultOf(elsewhere, elsewhere.dispatch('o-1', both))).toMatchObject(done); // it is over, and does not run again
  expect(ran).toHaveBeenCalledOnce();
});

const approved = (title: string) => ({ title, kind: 'approval', resolution: 'approved' });
const asks = (title: string) => ({ status: { state: 'input-required', input_request: { title } } });

test('interrupts of one step are asked one after the other, also when a dispatch comes again', async () => {
  const ask = (name: string) => () => {
    const { resolution, comment }: TaskResolution = interrupt({ kind: 'approval', title: name, prompt: name });
    return { notes: [`${name}: ${resolution} ${comment}`] };
  };
  const graph = new StateGraph(Refund)
    .addNode('first', ask('first'))
    .addNode('second', ask('second'))
    .addEdge(START, 'first')
    .addEdge(START, 'second')
    .compile({ checkpointer: new MemorySaver() });
  const mesh = await joined(graphHandler(graph, options));
  expect(await resultOf(mesh, mesh.dispatch('o-1'))).toMatchObject(asks('first'));
  expect(await resultOf(mesh, mesh.dispatch('o-1'))).toMatchObject(asks('first'));
  const one = answered({ ...approved('first'), comment: 'A' });
  expect(await resultOf(mesh, mesh.dispatch('o-1', one))).toMatchObject(asks('second'));
  expect(await resultOf(mesh, mesh.dispatch('o-1', one))).toMatchObject(asks('second'));
  const both = answered({ ...approved('first'), comment: 'A' }, { ...approved('second'), comment: 'B' });
  const notes = ['first: approved A', 'second: approved B'];
  expect(await resultOf(mesh, mesh.dispatch('o-1', both))).toMatchObject({
    result: { artifacts: [{ parts: [{ data: { notes } }] }] },
  });
});

test('several interrupts of one node get the answers to their own questions', async () => {
  const graph = new StateGraph(Refund)
    .addNode('both', () => {
      const first: TaskResolution = interrupt({ kind: 'approval', title: 'first', prompt: '1' });
      const second: TaskResolution = interrupt({ kind: 'approval', title: 'second', prompt: '2' });
      return { notes: [`${first.comment}, ${second.comment}`] };
    })
    .addEdge(START, 'both')
    .compile({ checkpointer: new MemorySaver() });
  const mesh = await joined(graphHandler(graph, options));
  await resultOf(mesh, mesh.dispatch('o-1'));
  const one = answered({ ...approved('first'), comment: 'A' });
  expect(await resultOf(mesh, mesh.dispatch('o-1', one))).toMatchObject(asks('second'));
  expect(await resultOf(mesh, mesh.dispatch('o-1', one))).toMatchObject(asks('second'));
  const both = answered({ ...approved('first'), comment: 'A' }, { ...approved('second'), comment: 'B' });
  expect(await resultOf(mesh, mesh.dispatch('o-1', both))).toMatchObject({
    result: { artifacts: [{ parts: [{ data: { notes: ['A, B'] } }] }] },
  });
});

test.each(['canceled', 'gone'])('a question of a message that is %s holds up no other message', async (state) => {
  const mesh = await joined(graphHandler(refunds(new MemorySaver(), vi.fn()), options));
  await resultOf(mesh, mesh.dispatch('o-1'));
  const answer =
    state === 'gone'
      ? { status: 404, body: { error: 'There is no such message.', code: 'NOT_FOUND' } }
      : { status: 200, body: { ok: true, message: { state } } };
  mesh.refusals.set('/messages/get_by_id', answer);
  expect(await resultOf(mesh, mesh.dispatch('o-2', { messageId: 'msg_2' }))).toMatchObject(asks('refund'));
  expect(mesh.requests.at(-1)).toMatchObject({ path: '/messages/get_by_id', body: { message_id: 'msg_1' } });
});

test('another message to a thread that waits is refused, and the question stays', async () => {
  const checkpoints = new MemorySaver();
  const mesh = await joined(graphHandler(refunds(checkpoints, vi.fn()), options));
  mesh.refusals.set('/messages/get_by_id', { status: 200, body: { ok: true, message: { state: 'input-required' } } });
  await resultOf(mesh, mesh.dispatch('o-1'));
  const failed = await mesh.frame('error', mesh.dispatch('o-2', { messageId: 'msg_2' }));
  expect(failed.payload).toMatchObject({ code: 'AGENT_BUSY', message: expect.stringContaining('msg_1') });
  const yes = answered({ title: 'refund', kind: 'approval', resolution: 'approved' });
  expect(await resultOf(mesh, mesh.dispatch('o-1', yes))).toMatchObject({
    status: { input_request: { title: 'tell' } },
  });
});

test('a message that comes again after a crash goes on from its last checkpoint', async () => {
  const checkpointer = new MemorySaver();
  const ran: string[] = [];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('first', () => {
      ran.push('first');
      return {};
    })
    .addNode('second', () => {
      ran.push('second');
      if (ran.length === 2) throw new Error('the process dies');
      return { messages: [new AIMessage('done')] };
    })
    .addEdge(START, 'first')
    .addEdge('first', 'second')
    .addEdge('second', END)
    .compile({ checkpointer });
  const mesh = await joined(graphHandler(graph));
  await mesh.frame('error', mesh.dispatch('go'));
  expect(await resultOf(mesh, mesh.dispatch('go'))).toMatchObject(textOf('done'));
  expect(ran).toEqual(['first', 'second', 'second']);
});

test('a canceled task aborts the graph; text and tokens of chosen nodes are the answer and the usage', async () => {
  const usage_metadata = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
  let signal: AbortSignal | undefined;
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('route', () => ({ messages: [new AIMessage({ content: 'to sales', usage_metadata })] }))
    .addNode('sales', async ({ messages }, config) => {
      signal = config.signal;
      if (messages[0]?.text === 'wait')
        await new Promise((_, reject) => config.signal?.addEventListener('abort', reject));
      return { messages: [new AIMessage({ content: 'tea', usage_metadata })] };
    })
    .addEdge(START, 'route')
    .addEdge('route', 'sales')
    .addEdge('sales', END)
    .compile({ checkpointer: new MemorySaver() });
  const mesh = await joined(graphHandler(graph, { nodes: ['sales'], threadId: (task) => task.dispatchId }));
  expect(await resultOf(mesh, mesh.dispatch('buy'))).toMatchObject({
    ...textOf('tea'),
    usage: { input_tokens: 6, output_tokens: 8 },
  });
  signal = undefined;
  const dispatch = mesh.dispatch('wait');
  await vi.waitFor(() => expect(signal).toBeDefined());
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: dispatch });
  await vi.waitFor(() => expect(signal?.aborted).toBe(true));
});
