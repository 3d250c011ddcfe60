import { beforeEach, expect, it } from 'vitest';
import { digestOf } from '../../../messages/digest.js';
import { listTools, setToolOwner } from '../../../tools/tool-owners.js';
import { testAuthor } from '../../setup/author.js';
import type { FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';
import { approvals, policyAboutPay } from './approval-fixture.js';
import { answeredCall, ask, callTool, ok, refusedWith, resultOf, take } from './tool-fixture.js';

useMesh();

let node: MeshNodeUnderTest;
let caller: FixtureAgent;
let bank: FixtureAgent;
const PAID = ok('paid');

/** An agent of a type of its own that offers the tool `pay`. */
async function offering(instanceId: string, agentType: string): Promise<FixtureAgent> {
  await fixture.register(instanceId, { agent_type: agentType });
  return (await node.join(instanceId, { tools: ['pay'] })).agent;
}

const setOwner = (agent_types: string[] | null) =>
  fixture.core.db.tenant(fixture.tenantId, (tx) =>
    setToolOwner(tx, testAuthor(fixture.tenantId), { tool: 'pay', agent_types }),
  );
const pays = async () => {
  const tools = await fixture.core.db.tenant(fixture.tenantId, (tx) => listTools(tx, fixture.tenantId));
  return tools.find(({ name }) => name === 'pay');
};

beforeEach(async () => {
  node = await fixture.node();
  await fixture.register('a');
  caller = (await node.join('a')).agent;
  bank = await offering('b', 'bank');
});

it('is made by agents of the type that a human approved, whoever offers the tool since', async () => {
  await policyAboutPay('require_approval');
  const { ref, dispatch, end } = await node.send(caller, 'pay it');
  const id = callTool(caller, { tool: 'pay', arguments: { amount: 5 }, dispatch_id: ref.dispatch_id });
  await resultOf(caller, id);
  const executor = { type: 'agent', id: 'bank' } as const;
  const digest = digestOf({ tool: 'pay', arguments: { amount: 5 }, executor });
  expect(await approvals.asked(ref)).toMatchObject({ executor, digest, target: { agent_type: 'bank' } });

  const thief = await offering('t', 'thief'); // it has done nothing yet, so a call that names nobody would go to it
  await approvals.resolve(ref, 'approved');
  (await take(bank, 'pay')).result(PAID);
  expect(await resultOf(caller, id)).toEqual(PAID);
  expect(thief.count('tool_call')).toBe(0);
  dispatch.result('done');
  await end;
});

it('reaches only agents of the types that own the tool, and nobody where no type does', async () => {
  await setOwner(['teller']);
  expect(await ask(caller, { tool: 'pay' })).toEqual(refusedWith('TOOL_NOT_FOUND'));
  const teller = await offering('c', 'teller');
  expect(await answeredCall(caller, { tool: 'pay' }, teller, PAID)).toEqual(PAID);
  expect(bank.count('tool_call')).toBe(0);
  await setOwner([]);
  expect(await ask(caller, { tool: 'pay' })).toEqual(refusedWith('TOOL_NOT_FOUND'));
});

it('is listed with the types that may offer it, and with another digest when these change', async () => {
  const before = await pays();
  expect(before).toMatchObject({
    source: 'agent',
    offered_by: ['bank'],
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  await offering('c', 'teller');
  const both = await pays();
  expect(both?.offered_by).toEqual(['bank', 'teller']);
  expect(both?.digest).not.toBe(before?.digest);
  await setOwner(['bank']);
  expect(await pays()).toEqual({ ...before, owners: ['bank'] });
});
