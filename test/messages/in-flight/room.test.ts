import { describe, expect, onTestFinished, test } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { FastPath } from '../../../messages/dispatch/fast-path.js';
import { FairShare } from '../../../messages/runner/running-dispatches.js';
import { newId } from '../../../runtime/ids.js';
import type { MeshNodeUnderTest } from '../../mesh/mesh-fixture.js';
import { database, fixture, useMesh } from '../../mesh/use-mesh.js';
import { dispatched } from '../../setup/agent.js';
import { createGateway, type Gateway } from '../../setup/gateway.js';
import { until } from '../../setup/until.js';

useMesh();

async function isSaturated(instanceId: string): Promise<boolean> {
  const [row] = await database.query<{ saturated: boolean }>(
    'SELECT is_saturated(a) AS saturated FROM agents a WHERE tenant_id = $1 AND instance_id = $2',
    [fixture.tenantId, instanceId],
  );
  return row?.saturated === true;
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

describe('on the workflow path', () => {
  test('a tenant with its share of the node is refused and marked, another is not, and the mark ends with the room', async () => {
    const node = await fixture.node({ inFlightMax: 4 });
    await fixture.register('a');
    const { agent } = await node.join('a');
    const first = await node.send(agent);
    await node.send(agent);
    const refused = await node.run(await fixture.open());
    expect(refused).toEqual({ kind: 'not_sent', reason: 'AGENT_BUSY' });
    // At once, so that its message is routed to another.
    expect(await isSaturated('a')).toBe(true);
    const { tenantId } = fixture;

    await fixture.reset();
    await fixture.register('b');
    const { agent: other } = await node.join('b');
    const { dispatch, end } = await node.send(other);
    dispatch.result('quick');
    expect(await end).toMatchObject({ kind: 'closed', final: 'completed' });

    fixture.tenantId = tenantId;
    first.dispatch.result('done');
    await until(async () => !(await isSaturated('a')), { what: 'the end of the saturation' });
  });

  test('an agent is marked with its last dispatch, and a new connection has no mark of the one before', async () => {
    const [node, next] = [await fixture.node(), await fixture.node()];
    await fixture.register('a');
    const { agent } = await node.join('a');
    const refs = await Promise.all(
      Array.from({ length: LIMITS.dispatchesInFlightPerConnection }, () => fixture.open()),
    );
    for (const ref of refs) void node.run(ref);
    await until(() => agent.count('dispatch') === refs.length, { what: 'the dispatches' });
    await until(() => isSaturated('a'), { what: 'the saturation' });
    await next.join('a');
    expect(await isSaturated('a')).toBe(false);
  });
});

describe('on the fast path', () => {
  /** A fast path with room for four messages, whose hand-overs are acknowledged when the test says so. */
  async function fastPath(node: MeshNodeUnderTest): Promise<{ gateway: Gateway; acknowledge: () => void }> {
    let acknowledge = (): void => undefined;
    const acknowledged = new Promise<void>((resolve) => {
      acknowledge = resolve;
    });
    const core = { ...fixture.core, limits: { ...fixture.core.limits, watchAfterMs: 50 } };
    const { dispatches } = fixture;
    const supervise = (): Promise<void> => acknowledged;
    const path = new FastPath({ core, dispatches, runner: node.runner, forwarder: null, supervise, inFlightMax: 4 });
    onTestFinished(() => path.stop());
    return { gateway: createGateway(core, path), acknowledge };
  }

  const isFast = async (gateway: Gateway): Promise<boolean> => {
    const parts = [{ kind: 'text' as const, text: 'hello' }];
    const message = { kind: 'message' as const, messageId: newId('req'), role: 'user' as const, parts };
    const accepted = await gateway.accept(fixture.caller, { message }, { method: 'message/send' });
    return accepted.live !== null;
  };

  test('a tenant has its share until workflows take over; others find room meanwhile', async () => {
    const node = await fixture.node();
    await fixture.register('a');
    await node.join('a');
    const { gateway, acknowledge } = await fastPath(node);
    expect([await isFast(gateway), await isFast(gateway), await isFast(gateway)]).toEqual([true, true, false]);
    const { tenantId } = fixture;

    await fixture.reset();
    await fixture.register('b');
    const { agent: other } = await node.join('b');
    expect(await isFast(gateway)).toBe(true);
    dispatched(other, await other.nextOfType('dispatch')).result('quick');

    fixture.tenantId = tenantId;
    acknowledge();
    await until(() => isFast(gateway), { what: 'room after the hand-over' });
  });
});
