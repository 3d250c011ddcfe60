import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { serveApi } from '../api/served-api.js';
import { cleanUp } from '../setup/clean-up.js';
import { receiver, status } from '../setup/receiver.js';
import { decided, deletePolicies, type Given, policyFor, tested } from './policy-fixture.js';

const { client } = await serveApi();
const cel = (expression: string, more: object = {}): Given => ({
  decision: 'deny',
  evaluator: { type: 'cel', expression, ...more },
});
const token = { sub: 'someone', credential_id: 'cred_1', scopes: ['full'], agent_type: '', user_id: 'ann' };

describe('CEL', () => {
  test.each<[string, string, PolicyRequest['arguments'], boolean]>([
    ['true applies', 'request.tool == "files.read"', {}, true],
    ['false does not', 'request.tool == "mail"', {}, false],
    ['arguments', 'request.arguments.amount > 100', { amount: 200.5 }, true],
    ['lists', 'request.arguments.to.exists(a, a.endsWith("@x.example"))', { to: ['a@b.example', 'c@x.example'] }, true],
    ['agents', 'request.agent.agent_type == "writer"', {}, true],
    ['the tenant and the token', 'request.tenant.startsWith("ten_") && "full" in request.token.scopes', {}, true],
    ['the limits of a token', 'request.token.user_id == "ann" && request.token.agent_types == []', {}, true],
    ['an absent text is empty', 'request.session.user_id == ""', {}, true],
    ['a missing argument is an error, which denies', 'request.arguments.missing == 1', {}, true],
    ['what is neither true nor false denies', 'request.tool', {}, true],
    ['a regular expression', 'request.arguments.sql.matches("(?i)drop")', { sql: 'Drop' }, true],
  ])('%s', (_what, expression, given, applies) => {
    expect(decided([cel(expression)], { arguments: given, token }).decision).toBe(applies ? 'deny' : 'allow');
  });

  test('an error asks where the policy says so, and never allows', () => {
    const failing = 'request.arguments.missing == 1';
    expect(decided([cel(failing, { on_error: 'require_approval' })]).decision).toBe('require_approval');
    expect(decided([{ ...cel(failing), decision: 'allow' }]).decision).toBe('deny');
  });

  test.each<[string, string, boolean | 'later']>([
    ['the type alone is known', 'request.agent.agent_type == "writer"', true],
    ['the skill alone is known', 'request.agent.skill_id != ""', false],
    ['the instance is not', 'request.agent.instance_id == "writer-1"', 'later'],
    ['nor is it in an index', 'request.agent["instance_id"] == "writer-1"', 'later'],
    ['nor all of the agent', '"x" in request.agent', 'later'],
    ['nor all of the request', 'size(request) > 99', 'later'],
    ['nor by a name for it', '[request].exists(r, r.agent.instance_id == "")', 'later'],
    ['what is about something else', 'request.arguments.agent.instance_id == 1', true],
  ])('of an agent that is not chosen yet %s', (_what, expression, applies) => {
    const about = { arguments: { agent: { instance_id: 1 } }, agent: { agent_type: 'writer', skill_id: '' } };
    const { decision } = decided([cel(expression)], about, ['instance_id']);
    expect(decision === 'later' ? decision : decision === 'deny').toBe(applies);
  });

  test('while an earlier policy may allow the agent that is chosen, none behind it refuses', () => {
    const mayAllow: Given = { ...cel('request.agent.instance_id == "writer-1"'), decision: 'allow' };
    const decisionOf = (decision: Given['decision'], instance_id?: string) =>
      decided([mayAllow, { decision, priority: 2 }], { agent: { instance_id } }, instance_id ? [] : ['instance_id'])
        .decision;
    expect([decisionOf('deny'), decisionOf('allow')]).toEqual(['later', 'allow']);
    expect([decisionOf('deny', 'writer-1'), decisionOf('deny', 'writer-2')]).toEqual(['allow', 'deny']);
  });

  test.each([
    ['no expression', 'request.'],
    ['more than 2,048 characters', `request.tool == "${'a'.repeat(2_048)}"`],
    ['another variable', 'tool == "x"'],
    ['too many parts', Array.from({ length: 160 }, () => 'true').join(' || ')],
    ['too deep', `size(${'['.repeat(40)}1${']'.repeat(40)}) > 0`],
    ['two comprehensions inside one', '[1].all(a, [1].all(b, [1].all(c, a + b + c > 0)))'],
    ['a pattern that is computed', 'request.tool.matches(request.action)'],
    ['a pattern that is too large', 'request.tool.matches("(x{100}){9}")'],
    ['a pattern that takes long to compile', `request.tool.matches(r"(?i)${'[\\x{0}-\\x{ffff}]'.repeat(9)}")`],
    ['a pattern that stands for a million instructions', `request.tool.matches("(${'ab?'.repeat(600)}){1000}")`],
    [
      'patterns that take long together',
      Array.from({ length: 9 }, (_, n) => `request.tool.matches(r"${n}${'\\pL'.repeat(8)}")`).join(' || '),
    ],
  ])('is refused as it is created: %s', async (_what, expression) => {
    const policy = { name: 'x', scope: 'tool', decision: 'deny', evaluator: { type: 'cel', expression } };
    expect(await client.failure('/policies/create_policy', policy)).toBe('400 BAD_REQUEST');
  });
});

describe('what could cost too much is not begun, and fails closed', () => {
  const a = (count: number) => Array.from({ length: count }, (_, n) => n);
  const long = (count: number) => 'a'.repeat(count);
  const doubled = (times: number) => `[0]${'.map(x, [x, x])'.repeat(times)}`;
  const doubling = `${doubled(5)} == ${doubled(5)} && request.arguments.a.all(x, ${doubled(3)} == [x])`;
  const growing = `${'request.arguments.t + '.repeat(20)}"" == "" && request.arguments.a.all(x, request.arguments.t == "")`;
  const LOOPS = 'request.arguments.a.all(x, request.arguments.a.all(y, x + y >= 0))';
  const PATTERNS = 'request.arguments.a.all(x, request.arguments.t.matches("(a+)+$"))';
  const TOO_DEAR = 'would cost too much';

  test.each<[string, string, Record<string, unknown>, string]>([
    ['a loop inside a loop over a long list', LOOPS, { a: a(2_000) }, TOO_DEAR],
    ['a list that doubles with each step', doubling, { a: a(2_000) }, TOO_DEAR],
    ['a pattern over a long text, for each item', PATTERNS, { a: a(500), t: long(5_000) }, TOO_DEAR],
    ['a pattern over a text of 60 kB', 'request.arguments.t.matches("(a|aa)+b$")', { t: long(60_000) }, TOO_DEAR],
    ['a text that grows', growing, { a: a(5_000), t: long(20_000) }, TOO_DEAR],
    ['a request that is too large for an expression', 'true', { t: long(70_000) }, 'too large'],
  ])('%s', (_what, expression, given, why) => {
    const { decision, trace } = decided([{ ...cel(expression), decision: 'allow' }], { arguments: given });
    expect(decision).toBe('deny');
    expect(trace[0]?.explanation).toContain(why);
  });

  test('many patterns in one decision: those that restrict apply, those that allow do not', () => {
    const dear = Array.from({ length: 20 }, () => ({ path: 't', op: 'matches' as const, value: '(x+x+)+y$' }));
    const about = { arguments: { t: `y${'x'.repeat(60_000)}` } };
    expect(decided([{ decision: 'deny', match: { arguments: dear } }], about).decision).toBe('deny');
    // Without a `y`, what they need is not there, which is cheap to find out.
    const without = { arguments: { t: 'x'.repeat(60_000) } };
    expect(decided([{ decision: 'deny', match: { arguments: dear } }], without).decision).toBe('allow');
    const unless: Given = { decision: 'require_approval', match: { not: { arguments: dear } } };
    expect(decided([unless], about).decision).toBe('require_approval');
  });

  test('what is cheap is evaluated, also over a request of 60 kB', () => {
    const expression = 'request.arguments.n == 1 && request.arguments.a.exists(x, x == 7)';
    const about = { arguments: { n: 1, a: a(500), t: 'a'.repeat(50_000) } };
    const { trace } = decided([{ ...cel(expression), decision: 'allow' }], about);
    expect(trace).toMatchObject([{ outcome: 'decided', decision: 'allow' }]);
  });
});

describe('webhook evaluators', () => {
  /** The decision about a tool call where a policy with this evaluator denies. */
  async function decide(url: string, more: object = {}, match: Given['match'] = {}): Promise<string> {
    cleanUp(() => deletePolicies(client));
    const evaluator = { type: 'webhook' as const, url, timeout_ms: 300, ...more };
    await policyFor(client, { scope: 'tool', decision: 'deny', match, evaluator });
    return (await tested(client)).decision;
  }
  const says = (answer: object) => (response: ServerResponse) => response.end(JSON.stringify(answer));

  test.each<[string, (response: ServerResponse) => void, string]>([
    ['says that it applies', says({ applies: true }), 'deny'],
    ['says that it does not', says({ applies: false }), 'allow'],
    ['answers something else', says({ ok: true }), 'deny'],
    ['answers 500', status(500), 'deny'],
    ['redirects', status(302), 'deny'],
    ['never answers', () => undefined, 'deny'],
  ])('one that %s', async (_what, answer, decision) => {
    const { url, arrived } = await receiver(answer);
    expect(await decide(url, { secret: 'hush' })).toBe(decision);
    expect(arrived).toHaveLength(1);
    const [{ headers, raw, body } = { headers: {}, raw: Buffer.of(), body: {} }] = arrived;
    expect(headers['x-service-signature']).toBe(createHmac('sha256', 'hush').update(raw).digest('hex'));
    expect(body).toMatchObject({ dry_run: true, request: { scope: 'tool', tool: 'files.read' } });
  });

  test.each(['deny', 'require_approval'])('one that is down leads to %s where the policy says so', async (on_error) => {
    expect(await decide('http://127.0.0.1:1/evaluate', { on_error })).toBe(on_error);
  });

  test('is not asked where the policy does not match', async () => {
    const { url, arrived } = await receiver(says({ applies: true }));
    expect(await decide(url, {}, { tools: ['mail'] })).toBe('allow');
    expect(arrived).toEqual([]);
  });
});
