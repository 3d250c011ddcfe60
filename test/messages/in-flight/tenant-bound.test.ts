import { expect, onTestFinished, test } from 'vitest';
import type { MessageCore } from '../../../messages/core.js';
import { Dispatcher } from '../../../messages/dispatch/dispatcher.js';
import type { FixtureAgent } from '../../mesh/fixture-agent.js';
import { database, fixture, useMesh } from '../../mesh/use-mesh.js';
import { dispatched, serve } from '../../setup/agent.js';
import { messageCore, textMessage } from '../../setup/core.js';
import { createGateway } from '../../setup/gateway.js';
import { until } from '../../setup/until.js';

useMesh();

/** A node that takes what waits. @returns what accepts a message there, and joins an agent of a type */
async function taking(limits: Partial<MessageCore['limits']>) {
  const node = await fixture.node();
  const core = messageCore(fixture.core.db, { limits });
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
  return { core, send, join };
}

/** The agent answers whatever it gets, and each time another message of its type comes: it always has a backlog. */
function isNeverDone(agent: FixtureAgent, send: () => Promise<unknown>): void {
  serve(agent, async (dispatch) => {
    await send();
    dispatch.result('done');
  });
}

const inFlight = () =>
  database.value<number>('SELECT count(*)::integer FROM running_messages WHERE tenant_id = $1 AND holds_slot', [
    fixture.tenantId,
  ]);

test('at the bound of a tenant an idle agent gets its message, however much waits for others', async () => {
  const { send, join } = await taking({ tenantMaxInFlight: 2 });
  const [busy, idle] = [await join('busy'), await join('idle')];
  for (let sent = 0; sent < 6; sent += 1) await send('busy');
  await until(() => busy.count('dispatch') === 2, { what: 'the first dispatches' });
  await send('idle');
  for (const frame of [await busy.nextOfType('dispatch'), await busy.nextOfType('dispatch')]) {
    await send('busy');
    dispatched(busy, frame).result('done');
  }
  isNeverDone(busy, () => send('busy'));
  dispatched(idle, await idle.nextOfType('dispatch')).result('done');
  const before = busy.count('dispatch');
  await until(() => busy.count('dispatch') > before + 2, { what: 'more of what waits for the other' });
  expect(await inFlight()).toBeLessThanOrEqual(2);
});

test('what agents have beyond a lowered bound ends, though more waits', async () => {
  const { core, send, join } = await taking({ tenantMaxInFlight: 4 });
  const busy = await join('busy');
  for (let sent = 0; sent < 8; sent += 1) await send('busy');
  await until(() => busy.count('dispatch') === 4, { what: 'the first dispatches' });
  core.limits.tenantMaxInFlight = 1;
  const lessIsAtWork = async () => {
    dispatched(busy, await busy.nextOfType('dispatch')).result('done');
    await send('busy');
    return (await inFlight()) === 1;
  };
  expect(await until(lessIsAtWork, { what: 'the bound' })).toBe(true);
});
