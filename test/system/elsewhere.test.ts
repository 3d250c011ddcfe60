// @module-tag once
import { expect, test } from 'vitest';
import type { Task } from '../../contracts/a2a/a2a.js';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { dispatched, echo } from '../setup/agent.js';
import { startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';
import { dispatchesTo, hold, joinType, looksOf, to } from './fixture.js';

const redis = await redisServer();
const shared = await startPlatform({ REDIS_URL: redis.url });
const { hasWorkflow, dispatchStates } = looksOf(shared);
/** Takes the calls. */
const caller = shared.platform.client;
/** Holds the agents' sockets. */
const holder = await shared.startPeer();

test('an agent whose socket another node holds answers what this one takes, in one dispatch and without a workflow', async () => {
  const agent = await joinType(holder, 'far', echo);
  const send = async (text: string) => {
    const task = await caller.send(text, to('far'));
    expect(task.status.state).toBe('completed');
    return task;
  };
  // The first one may come before the processes have found each other.
  await until(async () => !(await hasWorkflow((await send('warm')).id)));
  const before = dispatchesTo(agent).length;
  const ids = [(await send('one')).id, (await send('two')).id];
  const events = [];
  for await (const event of caller.stream('three', to('far'))) events.push(event);
  expect(events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
  for (const id of [...ids, (events[0] as Task).id])
    expect([await hasWorkflow(id), await dispatchStates(id)]).toEqual([false, ['completed']]);
  expect(dispatchesTo(agent)).toHaveLength(before + 3);
});

test('its chunks are streamed there while it works, and it hears of a cancel', async () => {
  const agent = await joinType(holder, 'streaming');
  const stream = caller.stream('go', to('streaming'));
  const shown = async () => {
    for await (const event of stream) if (event.kind === 'artifact-update') return event.artifact.parts;
    return [];
  };
  const first = shown();
  dispatched(agent, await agent.nextOfType('dispatch')).chunk(0, 'one ');
  expect(await first).toEqual([{ kind: 'text', text: 'one ' }]);
  const { task, dispatch } = await hold(caller, agent, to('streaming'));
  await caller.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
  const notice = await agent.nextOfType('error');
  expect(notice).toMatchObject({ in_reply_to: dispatch.frame.id, payload: { code: 'CANCELED' } });
  for (const frame of dispatchesTo(agent)) dispatched(agent, frame).result('done');
  expect((await caller.message(task.id)).state).toBe('canceled');
});
