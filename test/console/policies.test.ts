import { expect, test } from 'vitest';
import { isDraftable } from '../../console/inbox/words.js';
import { bodyOf, draftFromRequest } from '../../console/policies/draft.js';
import { parsePoliciesSearch } from '../../console/policies/search.js';
import { callsWords, sentenceOf, shownPolicies, termsOf, whyInactive } from '../../console/policies/words.js';
import { CreatePolicyRequest, type Policy } from '../../contracts/api/policies/policies.js';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { decided, type Given } from '../policy/policy-fixture.js';

const NOW = Date.parse('2026-11-28T12:00:30.500Z');

const policyOf = (fields: Partial<Policy>): Policy => ({
  ...{ policy_id: 'pol_1', tenant_id: 'ten_1', scope: 'tool', name: 'Payments', decision: 'require_approval' },
  ...{ description: '', match: {}, reason: '', approvers: [], evaluator: {}, priority: 100, enabled: true },
  ...{ created_at: '2026-11-01T00:00:00.000Z', updated_at: '2026-11-01T00:00:00.000Z', updated_by: null, ...fields },
});
const requestOf = (asked: object, fields: Partial<RequestRecord> = {}): RequestRecord =>
  ({
    ...{ request_id: 'req_1', message_id: 'msg_1', session_id: 'ses_1', agent_type: 'buyer', state: 'open' },
    ...{ sent_by: { type: 'credential', id: 'cl_1' }, may_answer: true },
    input_request: { source: 'policy', kind: 'approval', ...asked },
    ...fields,
  }) as RequestRecord;
const APPROVED = { resolution: 'approved', principals: [], at: '2026-11-28T11:00:00.000Z' };

const ARGUMENTS = { amount: 5, to: ['x', 'y'], note: null, 'a.b': { c: 'dotted' }, empty: {} };

test.each([
  ['the same call', ARGUMENTS, 'allow'],
  ['another amount', { ...ARGUMENTS, amount: 6 }, 'require_approval'],
  ['another member', { ...ARGUMENTS, bcc: 'z' }, 'require_approval'],
  ['one more in a list', { ...ARGUMENTS, to: ['x', 'y', 'z'] }, 'require_approval'],
  ['a member less', { amount: 5 }, 'require_approval'],
  ['something where nothing was', { ...ARGUMENTS, empty: { x: 1 } }, 'require_approval'],
  ['another value where no condition reaches', { ...ARGUMENTS, 'a.b': { c: 'other' } }, 'require_approval'],
])('a draft from an approved call decides about %s', (_what, given, decision) => {
  const asking = policyOf({ match: { tools: ['pay*'] }, priority: 40 });
  const request = requestOf({ tool: 'pay', arguments: ARGUMENTS }, { state: 'decided', decided: APPROVED });
  const { body, leftOut } = draftFromRequest(request, asking, NOW);
  expect(leftOut).toEqual([]);
  const policy = CreatePolicyRequest.parse(body);
  expect(policy).toMatchObject({ scope: 'tool', priority: 39, end_at: '2026-12-28T12:00:00.000Z', max_calls: 20 });
  const ruleOf = ({ decision: effect, priority, match, evaluator }: typeof policy | Policy) =>
    ({ decision: effect, priority, match, evaluator }) as Given;
  const about = { tool: 'pay', arguments: given, agent: { agent_type: 'buyer' } };
  expect(decided([ruleOf(policy), ruleOf(asking)], about).decision).toBe(decision);
});

const EXPIRED = { ...APPROVED, resolution: 'expired' };
const OF_PLAN = requestOf({}, { plan_id: 'pln_1', agent_type: undefined });
const UNBOUNDED = { max_calls: null };
test.each([
  [
    'a rejected call is denied',
    requestOf({ tool: 'pay' }, { decided: { ...APPROVED, resolution: 'rejected', comment: 'Never' } }),
    null,
    { decision: 'deny', name: 'Never allow pay by buyer', reason: 'Never', priority: 99, scope: 'tool', ...UNBOUNDED },
  ],
  [
    'a message is allowed from who sent it, for whom',
    requestOf({}, { user_id: 'ada "x"' }),
    policyOf({ scope: 'dispatch', priority: 7 }),
    {
      ...{ decision: 'allow', scope: 'dispatch', priority: 6, match: { agent_types: ['buyer'] } },
      evaluator: {
        expression: 'request.token.credential_id == "cl_1" && request.session.user_id == "ada \\"x\\""',
        on_error: 'require_approval',
      },
    },
  ],
  ['nobody decided', requestOf({ tool: 'pay' }, { decided: EXPIRED }), null, { decision: 'allow' }],
  ['a plan', OF_PLAN, null, { scope: 'plan', name: 'Always allow plans', match: {}, ...UNBOUNDED }],
])('%s', (_, request, asking, body) => {
  expect(CreatePolicyRequest.parse(draftFromRequest(request, asking, NOW).body)).toMatchObject(body);
});

test('a draft that cannot be exact says so, and only what policies ask about is drafted', () => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`member-${n}`, n]));
  const { body, leftOut } = draftFromRequest(requestOf({ tool: 'pay', arguments: many }), null, NOW);
  expect(CreatePolicyRequest.safeParse(body).success).toBe(true);
  expect(leftOut.length).toBeGreaterThan(0);
  const drafted = ['policy', 'guard', 'agent', 'plan'].filter((source) => isDraftable(requestOf({ source })));
  expect(drafted).toEqual(['policy']);
});

test.each([
  [{}, 'Asks a person about tool calls, all of them.'],
  [
    { decision: 'deny', match: { tools: ['a', 'b.*'], arguments: [{ path: 'n', op: 'gte', value: 3 }] } },
    'Denies tool calls where the tool is a or b.* and n ≥ 3.',
  ],
  [
    { scope: 'admission', decision: 'allow', match: { not: { hosts: ['x.example'] } }, evaluator: { type: 'cel' } },
    'Allows messages and agents that come in where not all of this: a host fits x.example and its expression is true.',
  ],
  [{ decision: 'allow', max_calls: 20 }, 'Allows tool calls, at most 20 of them.'],
  [
    { decision: 'allow', match: { tools: ['pay'] }, max_calls: 1_000 },
    'Allows tool calls where the tool is pay, at most 1,000 of them.',
  ],
] as [Partial<Policy>, string][])('%j reads: %s', (fields, text) => expect(sentenceOf(policyOf(fields))).toBe(text));

test('who may decide, and for how long', () => {
  const approval = { quorum: 2, timeout_seconds: 3_600, allow_self: false, on_reject: 'fail' as const };
  expect(termsOf({ approvers: ['finance'], evaluator: { approval } })).toEqual([
    '2 different people must approve: finance, or anybody with the scope admin.',
    'After 1 h without a decision it is refused.',
    'Who sent the message may not approve it.',
  ]);
});

test('policies stand in the order in which they are looked at', () => {
  const policies = [
    policyOf({ policy_id: 'pol_4', decision: 'allow' }),
    policyOf({ policy_id: 'pol_3', decision: 'deny', end_at: '2026-11-28T12:00:00.000Z' }),
    policyOf({ policy_id: 'pol_2', decision: 'audit', enabled: false }),
    policyOf({ policy_id: 'pol_1', priority: 1, match: { tools: ['mail.*'] } }),
    policyOf({ policy_id: 'pol_0', scope: 'admission', priority: 900 }),
  ];
  const shown = (search: Parameters<typeof shownPolicies>[1]) =>
    shownPolicies(policies, search, NOW)
      .map(({ policy_id }) => policy_id.at(-1))
      .join('');
  expect(shown({})).toBe('01234');
  expect(shown({ scope: 'tool' })).toBe('1234');
  expect(shown({ show: 'active' })).toBe('014');
  expect(shown({ show: 'inactive' })).toBe('23');
  expect(shown({ q: 'MAIL' })).toBe('1');
});

test.each<[Partial<Policy>, string | undefined, string | undefined]>([
  [{}, undefined, undefined],
  [{ max_calls: 20, calls_allowed: 12 }, '12 of 20 calls', undefined],
  [{ max_calls: 1, calls_allowed: 1 }, '1 of 1 call', 'used up'],
  [{ max_calls: 3, calls_allowed: 3, enabled: false }, '3 of 3 calls', 'inactive'],
  [{ max_calls: 3, calls_allowed: 4, end_at: '2026-11-28T12:00:00.000Z' }, '4 of 3 calls', 'ended'],
])('%j: %s, %s', (fields, calls, inactive) => {
  expect([callsWords(policyOf(fields)), whyInactive(policyOf(fields), NOW)]).toEqual([calls, inactive]);
});

test('a stored policy is changed as it was read', () => {
  const policy = policyOf({ match: { tools: ['a'] } });
  const unbounded = { match: { tools: ['a'] }, end_at: null, max_calls: null };
  expect(CreatePolicyRequest.parse(bodyOf(policy))).toMatchObject(unbounded);
  const bounded = policyOf({ decision: 'allow', max_calls: 20, calls_allowed: 12 });
  expect(CreatePolicyRequest.parse(bodyOf(bounded))).toMatchObject({ max_calls: 20 });
});

test('an address that anybody wrote gives only what fits', () => {
  const search = { q: '', scope: 'all', show: 'active', policy: 7, panel: 'new', request: 'req_1', more: 'y' };
  expect(parsePoliciesSearch(search)).toEqual({ show: 'active', panel: 'new', request: 'req_1' });
});
