import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PolicyTrace } from '../../contracts/api/policies/policies.js';
import type { Match } from '../../contracts/api/policies/policy-match.js';
import { type CompiledPolicy, compilePolicy, policyOrder } from '../../policy/compiled-policy.js';
import { decideBy, type EarlyVerdict } from '../../policy/decision.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { Facts, type LaterFact } from '../../policy/matching/facts.js';
import { contentKeys, type PolicyKey, requestKeys } from '../../policy/matching/policy-key.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { PolicySet } from '../../policy/policy-set.js';

const DEPS = {
  secrets: { decrypt: (sealed: Buffer) => sealed },
  webhooks: new WebhookEvaluators({ request: () => Promise.reject(new Error('nobody is asked')) }),
};

type Given = Pick<CompiledPolicy, 'decision' | 'priority'> & { match: Match; expression?: string };

function compiled(policies: readonly Given[]): CompiledPolicy[] {
  return policies
    .map(({ expression, ...policy }, n) =>
      compilePolicy(
        {
          ...{ tenant_id: 'ten_1', policy_id: `pol_${String(n).padStart(4, '0')}`, scope: 'tool', name: `policy ${n}` },
          ...{ description: '', reason: '', approvers: [], evaluator_secret: null, enabled: true },
          ...{ created_at: new Date(0), updated_at: new Date(0) },
          evaluator: expression ? { type: 'cel', expression, on_error: 'deny' } : {},
          ...policy,
        },
        DEPS,
      ),
    )
    .sort(policyOrder);
}

/** The same policies without an index: each is asked all its conditions. */
const plainList = (policies: readonly CompiledPolicy[]) =>
  new PolicySet(policies.map((policy) => ({ ...policy, requestKeys: [], contentKeys: [] })));

function decision(set: PolicySet, request: PolicyRequest, later: LaterFact[]): [EarlyVerdict, PolicyTrace[]] {
  const trace: PolicyTrace[] = [];
  const verdict = decideBy(set, new Facts('ten_1', request, later));
  const traced = decideBy(set, new Facts('ten_1', request, later), { trace });
  if (verdict instanceof Promise) throw new Error('an evaluator was waited for');
  expect(traced).toEqual(verdict);
  return [verdict, trace];
}

// Few letters, so that what is drawn often matches.
const word = fc.stringMatching(/^[ab.]{1,3}$/);
const glob = fc.oneof(
  word,
  word.map((text) => `${text}*`),
  fc.stringMatching(/^[ab.*?]{1,4}$/),
);
const globs = fc.array(glob, { minLength: 1, maxLength: 3 });
const argumentPath = fc.constantFrom('a', 'b', 'b.*', 'b.c');
/** As several types: what is equal to which is for `isEqual` to say. */
const scalar = fc.constantFrom(1, 2, '1', '1.0', ' 2', 'x', true, 'true', null, 'null');
const conditions = {
  ...{ tools: globs, actions: globs, agent_types: globs, instance_ids: globs, skills: globs },
  arguments: fc.array(
    fc.oneof(
      fc.record({ path: argumentPath, op: fc.constantFrom('eq' as const, 'ne' as const), value: scalar }),
      fc.record({
        path: argumentPath,
        op: fc.constant('in' as const),
        value: fc.array(scalar, { minLength: 1, maxLength: 3 }),
      }),
      fc.record({ path: argumentPath, op: fc.constant('gt' as const), value: fc.constant(1) }),
    ),
    { minLength: 1, maxLength: 2 },
  ),
  paths: fc.array(fc.stringMatching(/^\/?([ab]|\*|\?|\/){1,5}$/), { minLength: 1, maxLength: 2 }),
  hosts: fc.array(fc.stringMatching(/^([abA*?é]|\.){1,3}\.(test|\*)$/), { minLength: 1, maxLength: 2 }),
};
/** One or two conditions each: of many, not all would hold. */
const some = fc
  .subarray(Object.keys(conditions) as (keyof typeof conditions)[], { minLength: 1, maxLength: 2 })
  .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, conditions[name]]))));
const match = fc.oneof(
  some,
  some,
  fc.tuple(some, some).map(([all, not]) => ({ ...all, not })),
) as fc.Arbitrary<Match>;
const policies = fc.array(
  fc.record(
    {
      decision: fc.constantFrom('allow', 'deny', 'require_approval', 'audit', 'audit'),
      priority: fc.nat(2),
      match,
      expression: fc.constantFrom('request.tool == "a"', 'request.arguments.missing == 1', 'request.action != "b"'),
    },
    { requiredKeys: ['decision', 'priority', 'match'] },
  ) as fc.Arbitrary<Given>,
  { maxLength: 15 },
);
const path = fc.stringMatching(/^\/?[ab]{0,2}(\/[ab]{1,2}){0,3}\/?$/);
const host = fc.stringMatching(/^[abAé]{1,2}(\.[abé]){0,2}\.test$/);
const request = fc.record(
  {
    ...{ scope: fc.constant('tool' as const), action: word, tool: word },
    agent: fc.record(
      { agent_type: word, instance_id: word, skill_id: word, skill_ids: fc.array(word, { maxLength: 3 }) },
      { requiredKeys: [] },
    ),
    arguments: fc.record(
      {
        a: fc.oneof(scalar, fc.constantFrom([1], {})),
        b: fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.record({ c: scalar })),
        path: fc.oneof(path, path, fc.constant('/a/../b')),
        files: fc.array(path, { maxLength: 2 }),
        url: fc.oneof(host, fc.constant('a'.repeat(2_100))).map((name) => `https://${name}/`),
        host,
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['scope', 'action'] },
);
const later = fc.subarray<LaterFact>(['agent_type', 'instance_id', 'skill_id']);

test('an indexed set decides as the list of its policies does, with the same trace', () => {
  let decided = 0;
  fc.assert(
    fc.property(policies, request, later, (given, about, unknown) => {
      const list = compiled(given);
      const [verdict, trace] = decision(new PolicySet(list), about, unknown);
      const [expected, expectedTrace] = decision(plainList(list), about, unknown);
      expect(verdict).toEqual(expected);
      expect(trace).toEqual(expectedTrace);
      if (trace.some(({ outcome }) => outcome === 'decided')) decided += 1;
    }),
    { numRuns: 500 },
  );
  // The property says nothing unless policies decide.
  expect(decided).toBeGreaterThan(50);
});

describe('the keys by which a policy is found', () => {
  const key = (fact: PolicyKey['fact'], texts: Partial<PolicyKey>): PolicyKey => ({
    ...{ fact, literals: [], starts: [], ends: [] },
    ...texts,
  });
  test.each<[string, Match, PolicyKey[]]>([
    ['a literal', { tools: ['a.b'] }, [key('tools', { literals: ['a.b'] })]],
    ['a start', { tools: ['a.*'] }, [key('tools', { starts: ['a.'] })]],
    ['an end', { tools: ['*.a'] }, [key('tools', { ends: ['.a'] })]],
    ['the longer of both', { tools: ['a*bc', 'de?f'] }, [key('tools', { ends: ['bc'], starts: ['de'] })]],
    ['both', { actions: ['a', 'b*'] }, [key('actions', { literals: ['a'], starts: ['b'] })]],
    [
      'several facts',
      { tools: ['a*'], agent_types: ['b'], skills: ['*'] },
      [key('tools', { starts: ['a'] }), key('agent_types', { literals: ['b'] })],
    ],
    ['wildcards at both ends', { tools: ['*.a*'] }, []],
    ['one such glob among others', { tools: ['a', '?b?'] }, []],
    ['everything', { tools: ['*'] }, []],
    ['a folder, which matches too', { paths: ['/a/**'] }, [key('paths', { starts: ['/a'] })]],
    ['what is under not', { not: { tools: ['a'] } }, []],
    ['nothing', {}, []],
  ])('%s', (_what, given, keys) => {
    expect([...requestKeys(given), ...contentKeys(given)]).toEqual(keys);
  });
});

describe('how many policies are looked at', () => {
  const thousand = (matchOf: (n: number) => Match) =>
    Array.from({ length: 1_000 }, (_, n): Given => ({ decision: 'deny', priority: 1, match: matchOf(n) }));
  const about: PolicyRequest = {
    scope: 'tool',
    action: 'call',
    tool: 'files.read',
    agent: { agent_type: 'type-7', instance_id: 'type-7-1' },
    arguments: { path: '/srv/7/a', url: 'https://api.host-7.test/x', id: 7 },
  };
  test.each<[string, (n: number) => Match, number]>([
    ['one for each tool', (n) => ({ tools: [`tool-${n}`] }), 0],
    ['one for each agent type', (n) => ({ agent_types: [`type-${n}`] }), 1],
    ['one for each type and all its tools', (n) => ({ agent_types: [`type-${n}`], tools: ['files.*'] }), 1],
    ['one for each type and one tool', (n) => ({ agent_types: [`type-${n}`], tools: ['files.read'] }), 1],
    ['one for each service', (n) => ({ tools: [`service-${n}.*`, 'files.*'].slice(0, n === 3 ? 2 : 1) }), 1],
    ['those without a key', (n) => ({ tools: [`*.${n}*`] }), 1_000],
    ['one tool, one for each folder', (n) => ({ tools: ['files.*'], paths: [`/srv/${n}/**`] }), 1],
    ['one tool, one for each host', (n) => ({ tools: ['files.*'], hosts: [`*.host-${n}.test`] }), 1],
    ['one tool, one for each argument', (n) => ({ arguments: [{ path: 'id', op: 'eq', value: `${n}` }] }), 1],
  ])('%s', (_what, matchOf, looked) => {
    const candidates = new PolicySet(compiled(thousand(matchOf))).candidates(new Facts('ten_1', about));
    expect(candidates.filter((one) => one === 1)).toHaveLength(looked);
  });
});
