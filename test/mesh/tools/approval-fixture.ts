import { beforeEach, expect } from 'vitest';
import { isTerminal } from '../../../contracts/message-states.js';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { resolveMessage } from '../../../messages/input/resolve.js';
import type { RawAgent } from '../../setup/agent.js';
import { until } from '../../setup/until.js';
import type { FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { database, fixture, useMesh } from '../use-mesh.js';
import { callTool, ok, refusedWith, resultOf, type TakenCall, take } from './tool-fixture.js';

/** Makes a policy of the tenant about the tool `pay`. @returns its id */
export function policyAboutPay(
  decision: 'deny' | 'require_approval' | 'audit',
  { approval = {}, ...fields }: { approval?: object; [field: string]: unknown } = {},
): Promise<string> {
  const about = { scope: 'tool', name: decision, match: { tools: ['pay'] }, reason: 'It costs money.' };
  return fixture.policy({ ...about, decision, evaluator: { approval }, ...fields });
}

export let node: MeshNodeUnderTest;
/** The bank, on the node. */
export let b: FixtureAgent;
/** The policy that wants approval for payments. */
export let careful: string;

/** Each test gets a tenant with the agent `a`, and with `b`, which pays; the tools of `b` are these. */
export function usePayments(...tools: string[]): void {
  useMesh('a');
  beforeEach(async () => {
    careful = await policyAboutPay('require_approval');
    await fixture.register('b', { agent_type: 'teller' });
    node = await fixture.node();
    b = (await node.join('b', { tools })).agent;
  });
}

/** A dispatch to the agent that has called `pay`, about which a human is asked. */
export async function heldCallOf(agent: FixtureAgent, on = node, given: object = { amount: 5 }, metadata = {}) {
  const sent = await on.send(agent, 'pay it', metadata);
  const payload = { tool: 'pay', arguments: given, dispatch_id: sent.ref.dispatch_id };
  const id = callTool(agent, payload);
  expect(await resultOf(agent, id)).toEqual(refusedWith('APPROVAL_PENDING'));
  return { ...sent, id, payload, request: await approvals.asked(sent.ref) };
}

/** The bank makes the payment, and the agent hears of it. @returns the call as the bank saw it */
export async function pays(bank: RawAgent, agent: RawAgent, id: string, result: unknown = 'paid'): Promise<TakenCall> {
  const call = await take(bank, 'pay');
  call.result(ok(result));
  expect(await resultOf(agent, id)).toEqual(ok(result));
  return call;
}

/** Waits until a human is asked. @returns the open request */
async function asked(ref: DispatchRef): Promise<{ request_id: string; tool?: string; arguments?: unknown }> {
  await until(async () => (await fixture.message(ref)).state === 'input-required');
  const { input_request } = await fixture.message(ref);
  if (!input_request) throw new Error('nobody was asked');
  return input_request;
}

/** The record of a message whose tool calls wait. */
export const approvals = {
  asked,

  resolve: (ref: DispatchRef, resolution: string, body: object = {}) =>
    resolveMessage(fixture.core, fixture.caller, ref.message_id, { resolution, ...body }),

  /** The states of all requests of a message, the oldest first. */
  requests(ref: DispatchRef): Promise<string[]> {
    const states = 'SELECT state FROM input_requests WHERE message_id = $1 ORDER BY requested_at, request_id';
    return database.column(states, [ref.message_id]);
  },

  async dispatch(ref: DispatchRef): Promise<Record<string, unknown>> {
    const row = 'SELECT * FROM dispatches WHERE dispatch_id = $1';
    return (await database.query(row, [ref.dispatch_id]))[0] ?? {};
  },

  async ended(ref: DispatchRef) {
    await until(async () => isTerminal((await fixture.message(ref)).state));
    return fixture.message(ref);
  },
};
