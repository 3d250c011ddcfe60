import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isTerminal } from '../../../contracts/api/messages.js';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { nextStep } from '../../../messages/supervise/next-step.js';
import type { PolicyRequest, Verdict } from '../../../policy/policy-request.js';
import { PlatformError } from '../../../runtime/errors.js';
import { type HeldCall, holdToolCall, useToolGrant, withdrawToolCall } from '../../../tools/approvals/tool-grants.js';
import { freshDatabase } from '../../setup/database.js';
import { contradictions } from '../../setup/histories/record-checker.js';
import { expectProperty } from '../../setup/properties.js';
import { runsOf, SEED } from '../../setup/seed.js';
import { MeshFixture } from '../mesh-fixture.js';
import { Approvals } from './approval-fixture.js';

const RUNS = runsOf(12, 60);

const database = await freshDatabase();
const fixture = await new MeshFixture(database).reset();
const approvals = new Approvals(fixture);
await fixture.register('a');
await database.query(`UPDATE agents SET status = 'available', mesh_id = 'mesh_1', connection_epoch = 1`);

const verdict = {
  decision: 'require_approval',
  by: { source: 'policy', policy_id: 'pol_1', name: 'careful', reason: 'It costs money.' },
  terms: { approvers: [], quorum: 1, timeout_seconds: 3_600, allow_self: true, on_reject: 'tell_agent' },
  audits: [],
} satisfies Verdict;
const policyRequest: PolicyRequest = { scope: 'tool', action: 'call', tool: 'pay' };

/** Refusals of the record that are an outcome, not a defect. */
const REFUSED = ['ALREADY_RESOLVED', 'NOT_AWAITING_INPUT', 'ALREADY_TERMINAL', 'CALLBACK_TOKEN_EXPIRED'];

/** One message, what its dispatches do and what humans decide. */
class GrantDriver {
  /** Arguments of the calls that passed, by the request whose grant they used. */
  readonly passed = new Map<string, unknown[]>();
  /** The latest request that a call waits for, by the dispatch that made the call. */
  readonly #waiting = new Map<string, string>();
  readonly ref: DispatchRef;
  #dispatch: DispatchRef;

  private constructor(ref: DispatchRef) {
    this.ref = ref;
    this.#dispatch = ref;
  }

  static async create(): Promise<GrantDriver> {
    const driver = new GrantDriver(await fixture.open());
    await driver.#send();
    return driver;
  }

  async run(action: Action, variant: number): Promise<void> {
    try {
      await this[action](variant);
    } catch (error) {
      if (!(error instanceof PlatformError && REFUSED.includes(error.code))) throw error;
    }
  }

  /** The agent calls, for the first time or again. */
  async call(variant: number): Promise<void> {
    const dispatch = this.#dispatch;
    const executor = { type: 'agent', id: 'bank' } as const;
    const call = { tool: 'pay', arguments: { amount: variant % 2 }, executor, target: null, verdict, policyRequest };
    const stored = { payload: { tool: 'pay' }, deadline_ms: 1_000 };
    const useId = randomUUID();
    const held = await holdToolCall(fixture.core.db, { dispatch, nodeId: 'mesh_1', useId, ...call, stored });
    if (held.verdict === 'waits') this.#waiting.set(dispatch.dispatch_id, held.request_id ?? '');
    this.#note(held);
  }

  /** The platform looks whether the call that waits may pass. */
  async use(): Promise<void> {
    const dispatch = this.#dispatch;
    const requestId = this.#waiting.get(dispatch.dispatch_id);
    if (requestId) this.#note(await useToolGrant(fixture.core.db, dispatch, requestId, true, randomUUID()));
  }

  async decide(variant: number): Promise<void> {
    const edited = variant % 3 === 0 ? { arguments: { amount: 9 } } : {};
    if (variant % 4 === 3) await approvals.resolve(this.ref, 'rejected');
    else await approvals.resolve(this.ref, 'approved', edited);
  }

  async withdraw(): Promise<void> {
    const requestId = this.#waiting.get(this.#dispatch.dispatch_id);
    if (requestId) await withdrawToolCall(fixture.core.db, this.#dispatch, requestId);
  }

  /** The agent or its node is lost. */
  async lose(): Promise<void> {
    await fixture.dispatches.failAsLost(this.#dispatch, 'AGENT_DISCONNECTED');
  }

  /** The workflow looks, after a restart for example: a message without a dispatch gets one, which is sent. */
  async restart(): Promise<void> {
    const step = await nextStep(fixture.core, this.ref);
    if (step?.kind !== 'dispatch') return;
    this.#dispatch = { ...this.ref, dispatch_id: step.dispatch_id };
    await this.#send();
  }

  async complete(variant: number): Promise<void> {
    if (variant % 4 > 0) return; // most messages go on
    const open = await fixture.dispatches.find(this.#dispatch);
    if (open) await fixture.dispatches.end(open, { state: 'completed', artifacts: [] }, null);
  }

  async cancel(variant: number): Promise<void> {
    if (variant % 4 === 0) await fixture.cancel(this.ref);
  }

  async #send(): Promise<void> {
    await fixture.dispatches.markSent(this.#dispatch, { mesh_id: 'mesh_1', epoch: 1 });
  }

  #note({ verdict: given, request_id, arguments: approved }: HeldCall): void {
    if (given !== 'granted' || request_id === null) return;
    this.passed.set(request_id, [...(this.passed.get(request_id) ?? []), approved]);
  }
}

type Action = 'call' | 'use' | 'decide' | 'withdraw' | 'lose' | 'restart' | 'complete' | 'cancel';

const action = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<Action>('call', 'decide') },
  { weight: 4, arbitrary: fc.constantFrom<Action>('use', 'lose', 'restart') },
  { weight: 1, arbitrary: fc.constantFrom<Action>('withdraw', 'complete', 'cancel') },
);
/** Up to three happen at the same time. */
const moments = fc.array(fc.array(fc.tuple(action, fc.nat(11)), { minLength: 1, maxLength: 3 }), {
  minLength: 6,
  maxLength: 14,
  size: 'max',
});

/** One thing after the other: a call that is approved as it is, and one that passes with edited arguments, whatever the random runs leave out. */
const SURE: [Action, number][][] = [
  [
    ['call', 0],
    ['decide', 1],
    ['use', 0],
  ],
  [
    ['call', 0],
    ['decide', 0],
    ['use', 0],
  ],
];
const examples = SURE.map((run): [[Action, number][][]] => [run.map((step) => [step])]);

/** Calls that passed in all runs: a property of none would hold too. */
const counted = { passed: 0, edited: 0 };

async function expectSound({ ref, passed }: GrantDriver): Promise<void> {
  const { state } = await fixture.message(ref);
  const requests = await database.query<{
    request_id: string;
    state: string;
    answer: { resolution: string } | null;
    arguments: object;
  }>('SELECT request_id, state, answer, arguments FROM input_requests WHERE message_id = $1', [ref.message_id]);
  expect(requests.filter((request) => request.state === 'pending')).toHaveLength(state === 'input-required' ? 1 : 0);
  const decisions = await database.query<{ request_id: string }>(
    'SELECT request_id FROM input_decisions WHERE message_id = $1',
    [ref.message_id],
  );
  const resolved = requests.filter((request) => request.state === 'resolved').map(({ request_id }) => request_id);
  expect(decisions.map(({ request_id }) => request_id).sort()).toEqual(resolved.sort());
  for (const [requestId, calls] of passed) {
    const request = requests.find(({ request_id }) => request_id === requestId);
    expect(request?.answer?.resolution).toBe('approved');
    expect(calls).toEqual([request?.arguments]); // once, as it was approved
  }
  const stopped = await database.query(
    `SELECT d.dispatch_id FROM dispatches d WHERE d.message_id = $1 AND d.state = 'sent' AND d.deadline_at IS NULL`,
    [ref.message_id],
  );
  expect(stopped.length).toBeLessThanOrEqual(state === 'input-required' ? 1 : 0);
  if (isTerminal(state)) {
    const ends = await database.query(
      `SELECT 1 FROM events WHERE payload ->> 'message_id' = $1
          AND event_type IN ('message.completed', 'message.error', 'message.canceled')`,
      [ref.message_id],
    );
    expect(ends).toHaveLength(1);
  }
}

test('a grant lets one call pass, with what was approved, whatever happens in whatever order', async () => {
  const property = fc.asyncProperty(moments, async (run) => {
    const driver = await GrantDriver.create();
    for (const moment of run) {
      const results = await Promise.allSettled(moment.map(([name, variant]) => driver.run(name, variant)));
      const defect = results.find((result) => result.status === 'rejected');
      if (defect) throw defect.reason;
      await expectSound(driver);
    }
    for (const calls of driver.passed.values()) {
      counted.passed += 1;
      if ((calls[0] as { amount?: number }).amount === 9) counted.edited += 1;
    }
  });
  await expectProperty(property, { runs: RUNS, seed: SEED, examples });
  expect(await contradictions(database)).toEqual([]);
  expect(counted.passed).toBeGreaterThan(0);
  expect(counted.edited).toBeGreaterThan(0);
}, 120_000);
