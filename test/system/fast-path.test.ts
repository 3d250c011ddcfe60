import { WorkflowNotFoundError } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import type { Task } from '../../contracts/a2a/a2a.js';
import { MessageCancelResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { messageWorkflowId } from '../../workflows/definitions.js';
import { type Behaviour, type Dispatched, dispatched, echo, type RawAgent } from '../setup/agent.js';
import { joinAgent, openSocket, registerAgent } from '../setup/platform/fleet.js';
import { FAST_PATH } from '../setup/platform/paths.js';
import { startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

const shared = await startPlatform({ ...FAST_PATH.env, RESUME_WINDOW_MS: '4000' });
const { client } = shared.platform;

const join = (agentType: string, behaviour?: Behaviour): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, behaviour);
const to = (agentType: string) => ({ metadata: { agent_type: agentType } });

function workflowOf(messageId: string) {
  const { tenant_id } = shared.platform.devJson();
  return shared.temporal.workflow.getHandle(messageWorkflowId({ tenant_id, message_id: messageId }));
}

async function hasWorkflow(messageId: string): Promise<boolean> {
  return workflowOf(messageId)
    .describe()
    .then(
      () => true,
      (error: unknown) => (error instanceof WorkflowNotFoundError ? false : Promise.reject(error)),
    );
}

/** Resolves when the message is in its workflow's care, which waits for the agent. */
async function handedOver(messageId: string): Promise<void> {
  const query = () => workflowOf(messageId).query<{ currentDetails?: string }>('__temporal_workflow_metadata');
  const details = await until(async () => (await query()).currentDetails, { what: 'the workflow of the message' });
  expect(details).toMatch(/^Waits for agent/);
}

/** Whether the row says that a workflow is wanted. */
async function wantsWorkflow(messageId: string): Promise<boolean> {
  const [row] = await shared.database.query<{ wanted: boolean }>(
    'SELECT wake_requested_at IS NOT NULL AS wanted FROM running_messages WHERE message_id = $1',
    [messageId],
  );
  return row?.wanted ?? false;
}

/** Sends a message and waits until the agent has it and its workflow supervises it. */
async function lasting(agent: RawAgent, agentType: string): Promise<{ task: Task; dispatch: Dispatched }> {
  const task = await client.send('think', { ...to(agentType), blocking: false });
  const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
  await handedOver(task.id);
  return { task, dispatch };
}

async function dispatchesOf(messageId: string): Promise<string[]> {
  const rows = await shared.database.query<{ state: string }>(
    'SELECT state FROM dispatches WHERE message_id = $1 ORDER BY created_at',
    [messageId],
  );
  return rows.map(({ state }) => state);
}

describe('a message that is answered at once', () => {
  test('has no workflow, and none is wanted', async () => {
    await join('quick', echo);
    const task = await client.send('hello', to('quick'));
    expect(task.status.state).toBe('completed');
    expect(await wantsWorkflow(task.id)).toBe(false);
    expect(await hasWorkflow(task.id)).toBe(false);
  });

  test('has none when it fails by its agent either', async () => {
    await join('failing', (dispatch) => dispatch.error('HANDLER_ERROR'));
    const task = await client.send('try', to('failing'));
    expect(task.status.state).toBe('failed');
    expect(await wantsWorkflow(task.id)).toBe(false);
    expect(await hasWorkflow(task.id)).toBe(false);
  });

  test('has none when it is streamed', async () => {
    await join('streaming', echo);
    const events = [];
    for await (const event of client.stream('hello', to('streaming'))) events.push(event);
    expect(events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
    const taskId = events.flatMap((event) => (event.kind === 'task' ? [event.id] : []))[0] as string;
    expect(await hasWorkflow(taskId)).toBe(false);
  });
});

describe('a message that lasts', () => {
  test('is a workflow that says what it waits for, and that ends with the answer', async () => {
    const agent = await join('thinker');
    const answer = client.send('think', to('thinker'));
    const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
    const { message_id } = dispatch.payload.session_context;
    await handedOver(message_id);
    dispatch.result('at last');
    expect((await answer).status.state).toBe('completed');
    expect(await workflowOf(message_id).result()).toMatchObject({ state: 'completed' });
    expect(await dispatchesOf(message_id)).toEqual(['completed']);
  });

  test('can be canceled, which its agent hears', async () => {
    const agent = await join('dreamer');
    const { task, dispatch } = await lasting(agent, 'dreamer');
    await client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
    expect(await agent.nextOfType('error')).toMatchObject({
      in_reply_to: dispatch.frame.id,
      payload: { code: 'CANCELED' },
    });
    expect(await workflowOf(task.id).result()).toMatchObject({ state: 'canceled' });
  });

  test('fails when its agent is lost, and nobody else gets it', async () => {
    const agent = await join('mortal');
    const { task } = await lasting(agent, 'mortal');
    agent.kill();
    expect((await client.untilState(task.id, 'failed')).error?.code).toBe('AGENT_DISCONNECTED');
    expect(await dispatchesOf(task.id)).toEqual(['lost']);
  });

  test('is gone on with by an agent that comes back with its token', async () => {
    const agent = await join('steady');
    const resume_token = agent.received[0]?.payload.resume_token;
    const { task, dispatch } = await lasting(agent, 'steady');
    agent.kill();
    await agent.closed;
    const back = await openSocket(shared.platform, 'steady-1');
    const inflight = [{ dispatch_id: dispatch.payload.dispatch_id, last_seq: -1 }];
    expect(await back.hello({ resume_token, inflight })).toMatchObject({ resumed: true });
    dispatched(back, dispatch.frame).result('after all');
    expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('after all');
    expect(await workflowOf(task.id).result()).toMatchObject({ state: 'completed' });
  });

  test('is a workflow from the start when no agent is there, which gives it to the one that joins', async () => {
    await registerAgent(client, { instanceId: 'latecomer-1', agentType: 'latecomer' });
    const task = await client.send('anyone?', { ...to('latecomer'), blocking: false });
    await until(() => hasWorkflow(task.id), { what: 'the workflow of the message' });
    await join('latecomer', echo);
    await client.untilState(task.id, 'completed');
    expect(await dispatchesOf(task.id)).toEqual(['completed']);
  });
});

describe('a message that asks a human', () => {
  test('is a workflow from then on, until the answer has led to the end', async () => {
    await join('asking', (dispatch) => {
      if (dispatch.payload.params.metadata?.resolution) dispatch.result('thanks');
      else dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
    });
    const task = await client.send('begin', to('asking'));
    expect(task.status.state).toBe('input-required');
    await until(() => hasWorkflow(task.id), { what: 'the workflow of the message' });
    await client.ok(`/messages/${task.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('thanks');
    expect(await workflowOf(task.id).result()).toMatchObject({ state: 'completed' });
  });
});
