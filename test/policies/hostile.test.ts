import { beforeAll, describe, expect, test } from 'vitest';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import type { NewPolicy } from './policy-fixture.js';
import { policyFor, tested } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const doubled = (times: number) => `[0]${'.map(x, [x, x])'.repeat(times)}`;

/** Why the only policy of the scope decided about a tool call with these arguments. */
async function explained(policy: Partial<NewPolicy>, args: Record<string, unknown>): Promise<[string, string]> {
  const { policy_id } = await policyFor(api.client, { scope: 'tool', decision: 'allow', name: 'hostile', ...policy });
  const { decision, trace } = await tested(api.client, { scope: 'tool', action: 'call', tool: 't', arguments: args });
  await api.client.post('/policies/delete_policy', { policy_id });
  return [decision, trace[0]?.explanation ?? ''];
}

describe('what could cost too much is not begun, and fails closed', () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      'a loop inside a loop over a long list',
      'request.arguments.a.all(x, request.arguments.a.all(y, x + y >= 0))',
      { a: numbers(2_000) },
    ],
    [
      'a list that doubles with each step',
      `${doubled(5)} == ${doubled(5)} && request.arguments.a.all(x, ${doubled(3)} == [x])`,
      { a: numbers(2_000) },
    ],
    [
      'a pattern over a long text, for each item',
      'request.arguments.a.all(x, request.arguments.t.matches("(a+)+$"))',
      { a: numbers(500), t: 'a'.repeat(5_000) },
    ],
    ['a pattern over a text of 60 kB', 'request.arguments.t.matches("(a|aa)+b$")', { t: 'a'.repeat(60_000) }],
    [
      'a text that grows',
      `${'request.arguments.t + '.repeat(20)}"" == "" && request.arguments.a.all(x, request.arguments.t == "")`,
      { a: numbers(5_000), t: 'a'.repeat(20_000) },
    ],
  ])('%s', async (_what, expression, args) => {
    const [decision, why] = await explained({ evaluator: { type: 'cel', expression } }, args);
    expect(decision).toBe('deny');
    expect(why).toContain('would cost too much');
  });

  test('a request that is too large for an expression', async () => {
    const evaluator = { type: 'cel' as const, expression: 'true' };
    const [decision, why] = await explained({ evaluator }, { t: 'a'.repeat(70_000) });
    expect(decision).toBe('deny');
    expect(why).toContain('too large');
  });

  test('many patterns in one decision: those that restrict apply, those that allow do not', async () => {
    const value = '(x+x+)+y$';
    const dear = Array.from({ length: 20 }, () => ({ path: 't', op: 'matches' as const, value }));
    const args = { t: `y${'x'.repeat(60_000)}` };
    expect((await explained({ decision: 'deny', match: { arguments: dear } }, args))[0]).toBe('deny');
    // Without a `y`, what they need is not there, which is cheap to find out.
    const without = { t: 'x'.repeat(60_000) };
    expect((await explained({ decision: 'deny', match: { arguments: dear } }, without))[0]).toBe('allow');
    const [decision] = await explained({ decision: 'require_approval', match: { not: { arguments: dear } } }, args);
    expect(decision).toBe('require_approval');
  });

  test('and takes no longer than what is cheap, so that it holds up nobody', async () => {
    const request: PolicyRequest = { scope: 'tool', action: 'call', tool: 't', arguments: { a: numbers(2_000) } };
    /** The least time of some decisions, in milliseconds: what other processes do hardly counts. */
    const timeOf = async (expression: string) => {
      const evaluator = { type: 'cel' as const, expression };
      const { policy_id } = await policyFor(api.client, { scope: 'tool', decision: 'deny', evaluator });
      let least = Number.POSITIVE_INFINITY;
      for (let run = 0; run < 20; run++) {
        const before = performance.now();
        for (let n = 0; n < 20; n++) await api.core.policies.decide(api.tenantId, request);
        least = Math.min(least, performance.now() - before);
      }
      await api.client.post('/policies/delete_policy', { policy_id });
      return least;
    };
    const cheap = await timeOf('request.arguments.a.size() == 1');
    // It would take 4,000,000 turns.
    const hostile = await timeOf('request.arguments.a.all(x, request.arguments.a.all(y, x + y >= 0))');
    expect(hostile / cheap).toBeLessThan(20);
  });

  test('what is cheap is evaluated, also over a request of 60 kB', async () => {
    const evaluator = {
      type: 'cel' as const,
      expression: 'request.arguments.n == 1 && request.arguments.a.exists(x, x == 7)',
    };
    expect((await explained({ evaluator }, { n: 1, a: numbers(500), t: 'a'.repeat(50_000) }))[0]).toBe('allow');
  });
});
