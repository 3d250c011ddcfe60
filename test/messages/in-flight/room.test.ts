import { describe, expect, onTestFinished, test } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { Dispatcher } from '../../../messages/dispatch/dispatcher.js';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { FairShare } from '../../../messages/runner/running-dispatches.js';
import type { MeshNodeUnderTest } from '../../mesh/mesh-fixture.js';
import { database, fixture, useMesh } from '../../mesh/use-mesh.js';
import { dispatched } from '../../setup/agent.js';
import { textMessage } from '../../setup/core.js';
import { createGateway } from '../../setup/gateway.js';
import { until } from '../../setup/until.js';

useMesh();

function isSaturated(instanceId: string): Promise<boolean | undefined> {
  const saturated = 'SELECT is_saturated(a) FROM agents a WHERE tenant_id = $1 AND instance_id = $2';
  return database.value(saturated, [fixture.tenantId, instanceId]);
}

describe('a share of what is in flight', () => {
  test.each([
    [1, 2_000],
    [2, 1_333],
    [9, 400],
  ])('of %i tenants that take all they can is %i of 4,000 at most, and another finds room', (tenants, most) => {
    const share = new FairShare(4_000);
    const taken = Array.from({ length: tenants }, () => 0);
    for (let turn = 0; turn < 4_000; turn += 1)
      for (let tenant = 0; tenant < tenants; tenant += 1) {
        if (share.isUsedUp(`${tenant}`)) continue;
        share.add(`${tenant}`);
        taken[tenant] = (taken[tenant] ?? 0) + 1;
      }
    expect(Math.max(...taken)).toBeLessThanOrEqual(most + 1);
    expect(share.isUsedUp('another')).toBe(false);
    for (const [tenant, count] of taken.entries())
      for (let ended = 0; ended < count; ended += 1) share.remove(`${tenant}`);
    expect(share.isUsedUp('0')).toBe(false);
  });
});

/** Accepts messages at a node. @returns what gives a message, and whether an agent has it at once */
function accepting(node: MeshNodeUnderTest): () => Promise<boolean> {
  const { core, dispatches } = fixture;
  const watch = async () => undefined;
  const dispatcher = new Dispatcher({ core, dispatches, runner: node.runner, reachesNodes: () => false, watch });
  if (dispatcher.taker) node.runner.takeBy(dispatcher.taker);
  onTestFinished(() => dispatcher.stop());
  const gateway = createGateway(core, dispatcher);
  return async () => {
    const accepted = await gateway.accept(fixture.caller, { message: textMessage() }, { method: 'message/send' });
    return accepted.live !== null;
  };
}

test('a tenant with its share of a node waits for room, which others find; it gets on as its agents end', async () => {
  const node = await fixture.node({ inFlightMax: 4 });
  const isAtOnce = accepting(node);
  await fixture.register('a');
  const { agent } = await node.join('a');
  expect([await isAtOnce(), await isAtOnce(), await isAtOnce()]).toEqual([true, true, false]);
  const { tenantId } = fixture;

  await fixture.reset();
  await fixture.register('b');
  const { agent: other } = await node.join('b');
  expect(await isAtOnce()).toBe(true);
  dispatched(other, await other.nextOfType('dispatch')).result('quick');

  fixture.tenantId = tenantId;
  await until(() => agent.count('dispatch') === 2, { what: 'the first dispatches' });
  dispatched(agent, await agent.nextOfType('dispatch')).result('done');
  await until(() => agent.count('dispatch') === 3, { what: 'the message that waited' });
});

test('beyond its bound nothing is sent to an agent; its last dispatch marks it, and a new connection has no mark of the one before', async () => {
  const [node, next] = [await fixture.node(), await fixture.node()];
  await fixture.register('a');
  const { agent } = await node.join('a');
  const most = LIMITS.dispatchesInFlightPerConnection;
  const refs: DispatchRef[] = [];
  // All at once are more than may wait for the database on a busy machine.
  while (refs.length <= most) refs.push(...(await Promise.all(Array.from({ length: 32 }, () => fixture.open()))));
  expect(await Promise.race(refs.map((ref) => node.run(ref)))).toMatchObject({ kind: 'not_sent' });
  await until(() => agent.count('dispatch') === most, { what: 'the dispatches' });
  await until(() => isSaturated('a'), { what: 'the saturation' });
  await next.join('a');
  expect(await isSaturated('a')).toBe(false);
});
