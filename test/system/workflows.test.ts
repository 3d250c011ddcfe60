import { describe, expect, test } from 'vitest';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { type Behaviour, dispatched, echo } from '../setup/agent.js';
import { openSocket, registerAgent } from '../setup/platform/fleet.js';
import { until } from '../setup/until.js';
import { fleetOn, hold, to } from './fixture.js';

const { platform, client, database, join, workflowOf, hasWorkflow, detailsOf, dispatchStates } = await fleetOn();

describe('a message that is answered at once has no workflow, and none is wanted', () => {
  const send = async (type: string) => (await client.send('hello', to(type))).id;
  const stream = async (type: string) => {
    const ids: string[] = [];
    for await (const event of client.stream('hello', to(type))) if (event.kind === 'task') ids.push(event.id);
    return ids[0] as string;
  };

  test.each<[string, string, Behaviour, (type: string) => Promise<string>]>([
    ['when it completes', 'completed', echo, send],
    ['when its agent fails it', 'failed', (dispatch) => dispatch.error('HANDLER_ERROR'), send],
    ['when it is streamed', 'completed', echo, stream],
  ])('%s', async (what, state, behaviour, ask) => {
    const type = what.replaceAll(' ', '-');
    await join(type, behaviour);
    const id = await ask(type);
    expect((await client.message(id)).state).toBe(state);
    const wanted = 'SELECT 1 FROM running_messages WHERE message_id = $1 AND wake_requested_at IS NOT NULL';
    expect(await database.query(wanted, [id])).toEqual([]);
    expect(await hasWorkflow(id)).toBe(false);
  });
});

test('a message that lasts is a workflow, which says what it waits for and ends with the message, whatever becomes of it', async () => {
  const begin = async (type: string) => {
    const agent = await join(type);
    const { task, dispatch } = await hold(client, agent, to(type));
    const details = await until(() => detailsOf(task.id), { what: `the workflow of the message that is ${type}` });
    expect(details).toMatch(new RegExp(`^Agent \`${type}-1\` \\(${type}\\) has it`));
    return { agent, id: task.id, dispatch };
  };
  const all = [begin('answered'), begin('canceled'), begin('resumed')] as const;
  const [answered, canceled, resumed] = await Promise.all(all);

  answered.dispatch.result('at last');
  await client.ok('/messages/cancel', { message_id: canceled.id }, MessageCancelResponse);
  const notice = await canceled.agent.nextOfType('error');
  expect(notice).toMatchObject({ in_reply_to: canceled.dispatch.frame.id, payload: { code: 'CANCELED' } });
  resumed.agent.kill();
  await resumed.agent.closed;
  const back = await openSocket(platform, 'resumed-1');
  const inflight = [{ dispatch_id: resumed.dispatch.payload.dispatch_id, last_seq: -1 }];
  const resume_token = resumed.agent.received[0]?.payload.resume_token;
  expect(await back.hello({ resume_token, inflight })).toMatchObject({ resumed: true });
  dispatched(back, resumed.dispatch.frame).result('after all');

  expect(await workflowOf(answered.id).result()).toMatchObject({ state: 'completed' });
  expect(await workflowOf(canceled.id).result()).toMatchObject({ state: 'canceled' });
  expect(await workflowOf(resumed.id).result()).toMatchObject({ state: 'completed' });
  expect((await client.message(resumed.id)).assistant_output).toBe('after all');
  for (const { id } of [answered, resumed]) expect(await dispatchStates(id)).toEqual(['completed']);
});

test('a message that waits long for an agent is a workflow, which says so, and goes to the one that joins', async () => {
  await registerAgent(client, { instanceId: 'latecomer-1', agentType: 'latecomer' });
  const task = await client.send('anyone?', { ...to('latecomer'), blocking: false });
  const details = await until(() => detailsOf(task.id), { what: 'the workflow of the message' });
  expect(details).toMatch(/^Waits for a free agent of type latecomer since/);
  await join('latecomer', echo);
  await client.untilState(task.id, 'completed');
  expect(await dispatchStates(task.id)).toEqual(['completed']);
});
