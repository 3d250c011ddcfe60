import { expect, onTestFinished, test } from 'vitest';
import { Dispatcher } from '../../../messages/dispatch/dispatcher.js';
import { database, fixture, useMesh } from '../../mesh/use-mesh.js';
import { dispatched, serve } from '../../setup/agent.js';
import { messageCore, textMessage } from '../../setup/core.js';
import { createGateway } from '../../setup/gateway.js';
import { until } from '../../setup/until.js';

useMesh();

const inFlight = () =>
  database.value<number>('SELECT count(*)::integer FROM running_messages WHERE tenant_id = $1 AND holds_slot', [
    fixture.tenantId,
  ]);

test('at the bound of a tenant an idle agent gets its message, however much waits for others', async () => {
  const node = await fixture.node();
  const core = messageCore(fixture.core.db, { limits: { tenantMaxInFlight: 2 } });
  const { dispatches } = fixture;
  const watch = async () => undefined;
  const dispatcher = new Dispatcher({ core, dispatches, runner: node.runner, reachesNodes: () => false, watch });
  if (dispatcher.taker) node.runner.takeBy(dispatcher.taker);
  dispatcher.taker?.start();
  onTestFinished(() => dispatcher.stop());
  const gateway = createGateway(core, dispatcher);
  const send = (agent_type: string) =>
    gateway.accept(fixture.caller, { message: textMessage(), metadata: { agent_type } }, { method: 'message/send' });
  const join = async (agent_type: string) => {
    await fixture.register(`the-${agent_type}`, { agent_type });
    return (await node.join(`the-${agent_type}`)).agent;
  };
  const [busy, idle] = [await join('busy'), await join('idle')];
  for (let sent = 0; sent < 6; sent += 1) await send('busy');
  await until(() => busy.count('dispatch') === 2, { what: 'the first dispatches' });
  await send('idle');
  for (const frame of [await busy.nextOfType('dispatch'), await busy.nextOfType('dispatch')]) {
    await send('busy');
    dispatched(busy, frame).result('done');
  }
  // From here on another message comes for each that ends: the queue of the busy agent is never empty.
  serve(busy, async (dispatch) => {
    await send('busy');
    dispatch.result('done');
  });
  const got = dispatched(idle, await idle.nextOfType('dispatch'));
  // What was lent is given back by the other agent, which has its places for ever otherwise.
  expect(await until(async () => (await inFlight()) === 2, { what: 'the bound' })).toBe(true);
  got.result('done');
  const before = busy.count('dispatch');
  await until(() => busy.count('dispatch') > before + 2, { what: 'more of what waits for the other' });
});
