import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PolicyTrace } from '../../contracts/api/policies/policies.js';
import type { ArgumentCondition, Match } from '../../contracts/api/policies/policy-match.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { decideBy, type EarlyVerdict } from '../../policy/decision.js';
import { compileMatch } from '../../policy/matching/conditions.js';
import { Facts, type LaterFact } from '../../policy/matching/facts.js';
import { policyKey as key, type PolicyKey } from '../../policy/matching/policy-key.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { PolicySet } from '../../policy/policy-set.js';
import { runsOf } from '../setup/seed.js';
import { compiled, type Given } from './policy-fixture.js';

const READ: PolicyRequest = { scope: 'tool', action: 'call', tool: 'files.read' };

/** The same policies without an index: each is asked all its conditions. */
const plainList = (policies: readonly CompiledPolicy[]) => new PolicySet(policies.map(withoutKeys));
function withoutKeys({ conditions, ...policy }: CompiledPolicy): CompiledPolicy {
  return { ...policy, conditions: conditions.map((condition) => ({ ...condition, keys: [] })) };
}

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
const amount = fc.constantFrom(1, 2, 1.5, '1', 'x');
const expression = fc.constantFrom('a', '^a.?b', '(a|x)', 'a|^[0-9]', '(?i)A', 'b$', '\\[.*1', 'a*');
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
      fc.record({ path: argumentPath, op: fc.constantFrom('gt', 'gte', 'lt', 'lte'), value: amount }),
      fc.record({ path: argumentPath, op: fc.constant('contains' as const), value: fc.oneof(scalar, word) }),
      fc.record({ path: argumentPath, op: fc.constant('matches' as const), value: expression }),
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
      evaluator: fc.record({
        type: fc.constant('cel' as const),
        expression: fc.constantFrom('request.tool == "a"', 'request.arguments.missing == 1', 'request.action != "b"'),
      }),
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
        a: fc.oneof(scalar, word, fc.constantFrom([1], ['a', 'x'], ['x', 1], [], {})),
        b: fc.oneof(
          scalar,
          fc.array(fc.oneof(scalar, word), { maxLength: 3 }),
          fc.record({ c: fc.oneof(scalar, word) }),
        ),
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
    { numRuns: runsOf(150, 500) },
  );
  // The property says nothing unless policies decide.
  expect(decided).toBeGreaterThan(15);
});

test('of a hundred policies just those that match are looked at, wherever they stand', () => {
  const places = Array.from({ length: 100 }, (_, n) => n);
  fc.assert(
    fc.property(fc.subarray(places), (matching) => {
      const given = places.map((n): Given => {
        const tool = matching.includes(n) ? 'files.read' : `tool-${n}`;
        return { decision: 'audit', priority: 1, match: { tools: [tool] } };
      });
      const [verdict] = decision(new PolicySet(compiled(given)), READ, []);
      const audits = verdict === 'later' ? [] : verdict.audits.map(({ name }) => name);
      expect(audits).toEqual(matching.map((n) => `policy ${n}`));
    }),
    { numRuns: 30 },
  );
});

describe('the keys by which a policy is found', () => {
  const where = (op: ArgumentCondition['op'], value: unknown) => ({ arguments: [{ path: 'a', op, value }] }) as Match;
  const ofA = (fact: PolicyKey['fact'], needs: Partial<PolicyKey>) => key(fact, { path: 'a', ...needs });
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
    ['wildcards at both ends', { tools: ['*.a*'] }, [key('tools', { parts: ['.a'] })]],
    ['the longest of what is between them', { tools: ['*a?bc*'] }, [key('tools', { parts: ['bc'] })]],
    ['such a glob among others', { tools: ['a', '?b?'] }, [key('tools', { literals: ['a'], parts: ['b'] })]],
    ['everything', { tools: ['*'] }, []],
    ['everything among others', { tools: ['a', '*?'] }, []],
    ['a folder, which matches too', { paths: ['/a/**'] }, [key('paths', { starts: ['/a'] })]],
    ['a folder anywhere', { paths: ['**/a/b/**'] }, [key('paths', { parts: ['a/b'] })]],
    ['segments of any folder', { paths: ['**/*/**'] }, []],
    ['an equal value', where('eq', '5.0'), [ofA('equal_arguments', { literals: ['5'] })]],
    ['one of several', where('in', ['x', 1, '1']), [ofA('equal_arguments', { literals: ['x', '1'] })]],
    ['any other', where('ne', 'x'), []],
    ['more than a number', where('gt', 5), [ofA('amounts', { least: 5 })]],
    ['at most a number', where('lte', 5), [ofA('amounts', { most: 5 })]],
    ['before a text', where('lt', 'x'), []],
    ['a text inside', where('contains', 'x'), [ofA('containing_arguments', { parts: ['x'] })]],
    ['a number inside', where('contains', 5), []],
    ['what an expression needs', where('matches', 'ab[0-9]'), [ofA('matched_arguments', { parts: ['ab'] })]],
    [
      'all that it needs, the longest first',
      where('matches', '^(ab|(cd)e+f)x.*longer.*yz$'),
      [['longer'], ['ab', 'cd'], ['yz']].map((parts) => ofA('matched_arguments', { parts })),
    ],
    ['an expression that needs nothing', where('matches', '(?i)ab|x?'), []],
    ['what is under not', { not: { tools: ['a'] } }, []],
    ['nothing', {}, []],
  ])('%s', (_what, given, keys) => {
    expect(compileMatch(given, 'deny').flatMap((condition) => condition.keys)).toEqual(keys);
  });
});

describe('how many policies are looked at', () => {
  const thousand = (matchOf: (n: number) => Match) =>
    Array.from({ length: 1_000 }, (_, n): Given => ({ decision: 'deny', priority: 1, match: matchOf(n) }));
  const about: PolicyRequest = {
    ...READ,
    agent: { agent_type: 'type-7', instance_id: 'type-7-1' },
    arguments: { path: '/srv/7/a', url: 'https://api.host-7.test/x', id: 7 },
  };
  test.each<[string, (n: number) => Match, number]>([
    ['one for each tool', (n) => ({ tools: [`tool-${n}`] }), 0],
    ['one for each agent type', (n) => ({ agent_types: [`type-${n}`] }), 1],
    ['one for each type and all its tools', (n) => ({ agent_types: [`type-${n}`], tools: ['files.*'] }), 1],
    ['one for each type and one tool', (n) => ({ agent_types: [`type-${n}`], tools: ['files.read'] }), 1],
    ['one for each service', (n) => ({ tools: [`service-${n}.*`, 'files.*'].slice(0, n === 3 ? 2 : 1) }), 1],
    ['one for each word in a tool', (n) => ({ tools: [`*.${n === 7 ? 'read' : n}*`] }), 1],
    ['those without a key', (n) => ({ not: { tools: [`tool-${n}`] } }), 1_000],
    ['one tool, one for each folder', (n) => ({ tools: ['files.*'], paths: [`/srv/${n}/**`] }), 1],
    ['one tool, one for each host', (n) => ({ tools: ['files.*'], hosts: [`*.host-${n}.test`] }), 1],
    ['one tool, one for each argument', (n) => ({ arguments: [{ path: 'id', op: 'eq', value: `${n}` }] }), 1],
    ['one for each amount', (n) => ({ arguments: [{ path: 'id', op: 'gt', value: 6 + n }] }), 2],
    ['one for each amount from below', (n) => ({ arguments: [{ path: 'id', op: 'lte', value: 7 - n }] }), 1],
    ['one for each word in an argument', (n) => ({ arguments: [{ path: 'url', op: 'contains', value: `-${n}.` }] }), 1],
    ['one for each expression', (n) => ({ arguments: [{ path: 'url', op: 'matches', value: `host-${n}\\b` }] }), 1],
  ])('%s', (_what, matchOf, looked) => {
    const set = new PolicySet(compiled(thousand(matchOf)));
    const candidates = set.candidates(new Facts('ten_1', about));
    expect(set.policies.filter((_policy, place) => candidates.has(place))).toHaveLength(looked);
  });
});

test('a policy that has ended decides nothing, and says since when', () => {
  const given = (end_at: Date): Given => ({ decision: 'deny', end_at });
  const [ended, trace] = decision(new PolicySet(compiled([given(new Date(0))])), READ, []);
  expect(ended).toMatchObject({ decision: 'allow' });
  expect(trace).toMatchObject([{ outcome: 'not_matched', explanation: 'It ended at 1970-01-01T00:00:00.000Z.' }]);
  const [running] = decision(new PolicySet(compiled([given(new Date(Date.now() + 60_000))])), READ, []);
  expect(running).toMatchObject({ decision: 'deny' });
});
