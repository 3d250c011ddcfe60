import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GetPoliciesResponse, PolicyResponse } from '../../contracts/api/policies/policies.js';
import { FleetClient } from '../../sdk/index.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { receiver, status } from '../setup/receiver.js';
import { type NewPolicy, policyFor, type Tested, tested } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});
afterEach(async () => {
  const { policies } = await api.client.ok('/policies/get_policies', { page_size: 100 }, GetPoliciesResponse);
  for (const { policy_id } of policies) await api.client.post('/policies/delete_policy', { policy_id });
});

type Made = Partial<NewPolicy> & Pick<NewPolicy, 'decision'>;

/** The decision about a tool call where these policies of scope `tool` are in force. */
async function decide(policies: Made[], request: Partial<Tested> = {}): Promise<string> {
  for (const policy of policies) await policyFor(api.client, { scope: 'tool', ...policy });
  const asked = { scope: 'tool' as const, action: 'call', tool: 'files.read', ...request };
  return (await tested(api.client, asked)).decision;
}

const deny = (match: NewPolicy['match']): Made[] => [{ decision: 'deny', match }];
const onlyAllow = (match: NewPolicy['match']): Made[] => [
  { decision: 'allow', match, priority: 1 },
  { decision: 'deny', priority: 2 },
];

describe('the order of policies', () => {
  test.each<[string, Made[], string]>([
    ['no policy allows', [], 'allow'],
    [
      'the lowest priority number decides',
      [
        { decision: 'deny', priority: 2 },
        { decision: 'allow', priority: 1 },
      ],
      'allow',
    ],
    [
      'at equal priority deny comes first',
      [{ decision: 'allow' }, { decision: 'require_approval' }, { decision: 'deny' }],
      'deny',
    ],
    ['then require_approval', [{ decision: 'allow' }, { decision: 'require_approval' }], 'require_approval'],
    ['one that is switched off is ignored', [{ decision: 'deny', enabled: false }], 'allow'],
    ['what does not match does not decide', [{ decision: 'deny', match: { tools: ['mail.*'] } }], 'allow'],
    [
      'an audit goes on',
      [
        { decision: 'audit', priority: 1 },
        { decision: 'deny', priority: 2 },
      ],
      'deny',
    ],
    ['an audit alone allows', [{ decision: 'audit' }], 'allow'],
  ])('%s', async (_what, policies, decision) => {
    expect(await decide(policies)).toBe(decision);
  });
});

describe('what policies match', () => {
  test.each<[string, NewPolicy['match'], Partial<Tested>, string]>([
    ['a tool by its name', { tools: ['files.read'] }, {}, 'deny'],
    ['a tool by a glob', { tools: ['files.*'] }, {}, 'deny'],
    ['another tool', { tools: ['files.rea'] }, {}, 'allow'],
    ['one character by ?', { tools: ['files.rea?'] }, {}, 'deny'],
    ['all given conditions', { tools: ['files.*'], agent_types: ['coder'] }, { agent_type: 'writer' }, 'allow'],
    ['the agent type', { agent_types: ['w*r'] }, { agent_type: 'writer' }, 'deny'],
    ['the instance', { instance_ids: ['writer-*'] }, { instance_id: 'writer-7' }, 'deny'],
    ['the skill', { skills: ['translate'] }, { skill_id: 'translate' }, 'deny'],
    ['the action', { actions: ['call'] }, {}, 'deny'],
    ['not', { not: { agent_types: ['coder'] } }, { agent_type: 'writer' }, 'deny'],
    ['not, which holds', { not: { agent_types: ['coder'] } }, { agent_type: 'coder' }, 'allow'],
    ['a path', { paths: ['/etc/**'] }, { arguments: { path: '/etc/passwd' } }, 'deny'],
    ['a path of another name', { paths: ['/etc/**'] }, { arguments: { what: '/etc/passwd' } }, 'deny'],
    ['a path in a list', { paths: ['/etc/**'] }, { arguments: { files: ['/srv/a', '/etc/passwd'] } }, 'deny'],
    ['* within a segment', { paths: ['/srv/*/key'] }, { arguments: { path: '/srv/a/b/key' } }, 'allow'],
    ['a traversal', { paths: ['/etc/**'] }, { arguments: { path: '/a/../etc' } }, 'deny'],
    ['an encoded traversal', { paths: ['/etc/**'] }, { arguments: { path: '/a/%2e%2e/etc' } }, 'deny'],
    ['a traversal encoded twice', { paths: ['/etc/**'] }, { arguments: { path: '/a/%252e%252e/etc' } }, 'deny'],
    ['an encoded path', { paths: ['/etc/**'] }, { arguments: { path: '%2fetc%2fpasswd' } }, 'deny'],
    ['an encoded NUL', { paths: ['/etc/**'] }, { arguments: { path: '/srv/a%00b' } }, 'deny'],
    ['doubled slashes and dots', { paths: ['/etc/**'] }, { arguments: { path: '//etc/./passwd' } }, 'deny'],
    ['backslashes', { paths: ['/etc/**'] }, { arguments: { path: '\\etc\\passwd' } }, 'deny'],
    ['another form of the same letters', { paths: ['/\u00e9/**'] }, { arguments: { path: '/e\u0301/a' } }, 'deny'],
    ['a file URL', { paths: ['/etc/**'] }, { arguments: { url: 'file:///etc/passwd' } }, 'deny'],
    ['a host', { hosts: ['*.example.com'] }, { arguments: { url: 'https://A.Example.com:8443/x' } }, 'deny'],
    ['a host by name', { hosts: ['db.internal'] }, { arguments: { host: 'db.internal:5432' } }, 'deny'],
    [
      'a host with a dot at its end',
      { hosts: ['db.internal'] },
      { arguments: { url: 'http://db.internal./' } },
      'deny',
    ],
    ['a host without a scheme', { hosts: ['evil.example'] }, { arguments: { url: ' //Evil.Example:8443/x' } }, 'deny'],
    ['a host behind backslashes', { hosts: ['evil.example'] }, { arguments: { url: '\\\\evil.example\\x' } }, 'deny'],
    ['a host in decimal', { hosts: ['127.0.0.1'] }, { arguments: { url: 'http://2130706433/' } }, 'deny'],
    ['eq', { arguments: [{ path: 'to', op: 'eq', value: 'x' }] }, { arguments: { to: 'x' } }, 'deny'],
    ['ne, also of what is not there', { arguments: [{ path: 'to', op: 'ne', value: 'x' }] }, {}, 'deny'],
    ['in', { arguments: [{ path: 'to', op: 'in', value: ['x', 'y'] }] }, { arguments: { to: 'y' } }, 'deny'],
    [
      'gt',
      { arguments: [{ path: 'a.amount', op: 'gt', value: 1000 }] },
      { arguments: { a: { amount: 5000 } } },
      'deny',
    ],
    [
      'gt of a number as text',
      { arguments: [{ path: 'amount', op: 'gt', value: 1000 }] },
      { arguments: { amount: '5000' } },
      'deny',
    ],
    [
      'lte, which does not hold',
      { arguments: [{ path: 'amount', op: 'lte', value: 10 }] },
      { arguments: { amount: 11 } },
      'allow',
    ],
    [
      'contains in a text',
      { arguments: [{ path: 'sql', op: 'contains', value: 'DROP' }] },
      { arguments: { sql: 'DROP TABLE a' } },
      'deny',
    ],
    [
      'contains in a list',
      { arguments: [{ path: 'to', op: 'contains', value: 'x' }] },
      { arguments: { to: ['y', 'x'] } },
      'deny',
    ],
    [
      'matches',
      { arguments: [{ path: 'sql', op: 'matches', value: '(?i)^drop\\s' }] },
      { arguments: { sql: 'drop table' } },
      'deny',
    ],
    [
      'every member by *',
      { arguments: [{ path: 'items.*.price', op: 'gt', value: 5 }] },
      { arguments: { items: [{ price: 1 }, { price: 9 }] } },
      'deny',
    ],
  ])('%s', async (_what, match, request, decision) => {
    expect(await decide(deny(match), request)).toBe(decision);
  });

  test.each<[string, NewPolicy['match'], Partial<Tested>, string]>([
    ['one path inside', { paths: ['/srv/**'] }, { arguments: { path: '/srv/a' } }, 'allow'],
    ['one of two paths outside', { paths: ['/srv/**'] }, { arguments: { from: '/srv/a', to: '/etc/a' } }, 'deny'],
    ['no path at all', { paths: ['/srv/**'] }, { arguments: { a: 1 } }, 'deny'],
    ['a traversal that comes back', { paths: ['/srv/**'] }, { arguments: { path: '/srv/../srv/a' } }, 'deny'],
    [
      'a host beside another',
      { hosts: ['a.example'] },
      { arguments: { urls: ['http://a.example', 'http://b.example'] } },
      'deny',
    ],
    [
      'one item too dear',
      { arguments: [{ path: 'items.*', op: 'lt', value: 5 }] },
      { arguments: { items: [1, 9] } },
      'deny',
    ],
  ])('a policy that allows wants all values to match: %s', async (_what, match, request, decision) => {
    expect(await decide(onlyAllow(match), request)).toBe(decision);
  });
});

describe('CEL', () => {
  const cel = (expression: string, more: object = {}): Made[] => [
    { decision: 'deny', evaluator: { type: 'cel', expression, ...more } },
  ];
  test.each<[string, string, Partial<Tested>, string]>([
    ['true applies', 'request.tool == "files.read"', {}, 'deny'],
    ['false does not', 'request.tool == "mail"', {}, 'allow'],
    ['arguments', 'request.arguments.amount > 100', { arguments: { amount: 200.5 } }, 'deny'],
    [
      'lists',
      'request.arguments.to.exists(a, a.endsWith("@evil.example"))',
      { arguments: { to: ['a@b.example', 'c@evil.example'] } },
      'deny',
    ],
    ['agents', 'request.agent.agent_type == "writer"', { agent_type: 'writer' }, 'deny'],
    ['the tenant and the token', 'request.tenant.startsWith("ten_") && "full" in request.token.scopes', {}, 'deny'],
    ['an absent text is empty', 'request.session.user_id == ""', {}, 'deny'],
    ['a missing argument is an error, which denies', 'request.arguments.missing == 1', {}, 'deny'],
    ['what is neither true nor false denies', 'request.tool', {}, 'deny'],
    ['a regular expression', 'request.arguments.sql.matches("(?i)drop")', { arguments: { sql: 'Drop' } }, 'deny'],
  ])('%s', async (_what, expression, request, decision) => {
    expect(await decide(cel(expression), request)).toBe(decision);
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
  ])('of an agent that is not chosen yet %s', async (_what, expression, applies) => {
    await policyFor(api.client, { scope: 'dispatch', decision: 'deny', evaluator: { type: 'cel', expression } });
    const about = { arguments: { agent: { instance_id: 1 } }, agent: { agent_type: 'writer', skill_id: '' } };
    const request = { scope: 'dispatch' as const, action: 'dispatch', ...about };
    const verdict = await api.core.policies.decideEarly(api.tenantId, request, ['instance_id']);
    expect(verdict === 'later' ? verdict : verdict.decision === 'deny').toBe(applies);
  });

  test('an error asks where the policy says so', async () => {
    expect(await decide(cel('request.arguments.missing == 1', { on_error: 'require_approval' }))).toBe(
      'require_approval',
    );
  });

  test('an error of a policy that allows does not allow', async () => {
    const evaluator = { type: 'cel' as const, expression: 'request.arguments.missing == 1' };
    expect(await decide([{ decision: 'allow', evaluator }])).toBe('deny');
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
    expect(await api.client.failure('/policies/create_policy', policy)).toBe('400 BAD_REQUEST');
  });
});

describe('webhook evaluators', () => {
  const webhook = (url: string, more: object = {}): Made[] => [
    { decision: 'deny', evaluator: { type: 'webhook', url, timeout_ms: 300, ...more } },
  ];
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
    expect(await decide(webhook(url, { secret: 'hush' }))).toBe(decision);
    expect(arrived).toHaveLength(1);
    const [{ headers, raw, body } = { headers: {}, raw: Buffer.of(), body: {} }] = arrived;
    expect(headers['x-service-signature']).toBe(createHmac('sha256', 'hush').update(raw).digest('hex'));
    expect(body).toMatchObject({ dry_run: true, request: { scope: 'tool', tool: 'files.read' } });
  });

  test('one that is down denies, or asks where the policy says so', async () => {
    const down = 'http://127.0.0.1:1/evaluate';
    expect(await decide(webhook(down))).toBe('deny');
    expect(await decide([{ ...webhook(down, { on_error: 'require_approval' })[0], priority: 1 } as Made])).toBe(
      'require_approval',
    );
  });

  test('is not asked where the policy does not match', async () => {
    const { url, arrived } = await receiver(says({ applies: true }));
    const evaluator = { type: 'webhook' as const, url };
    expect(await decide([{ decision: 'deny', match: { tools: ['mail'] }, evaluator }])).toBe('allow');
    expect(arrived).toEqual([]);
  });
});

describe('managing policies', () => {
  const simple = { scope: 'tool' as const, decision: 'deny' as const };

  test('a policy is read as it was written, without its secret', async () => {
    const evaluator = { type: 'webhook' as const, url: 'https://example.com/x', secret: 'hush' };
    const made = await policyFor(api.client, { ...simple, match: { tools: ['a'] }, approvers: ['x'], evaluator });
    expect(made).toMatchObject({ tenant_id: api.tenantId, priority: 100, enabled: true, match: { tools: ['a'] } });
    expect(made.evaluator).toEqual({
      type: 'webhook',
      url: 'https://example.com/x',
      timeout_ms: 2_000,
      on_error: 'deny',
      secret_set: true,
    });
    const { policy_id, tenant_id } = made;
    const read = await api.client.ok('/policies/get_policy_by_id', { policy_id, tenant_id }, PolicyResponse);
    expect(read.policy).toEqual(made);
  });

  test('only what is given changes, and the secret stays', async () => {
    const evaluator = { type: 'webhook' as const, url: 'https://example.com/x', secret: 'hush' };
    const { policy_id, ...made } = await policyFor(api.client, { ...simple, evaluator });
    const changed = { policy_id, priority: 7, evaluator: { ...made.evaluator, timeout_ms: 500 } };
    const { policy } = await api.client.ok('/policies/update_policy', changed, PolicyResponse);
    expect(policy).toMatchObject({ priority: 7, decision: 'deny', evaluator: { timeout_ms: 500, secret_set: true } });
  });

  test.each([
    ['the scope of a policy', '/policies/update_policy', { scope: 'plan' }],
    ['an unknown member of match', '/policies/update_policy', { match: { tool: ['a'] } }],
    ['an unknown member of not', '/policies/update_policy', { match: { not: { tool: ['a'] } } }],
    [
      'an unknown operator',
      '/policies/update_policy',
      { match: { arguments: [{ path: 'a', op: 'like', value: 'x' }] } },
    ],
    [
      'an unknown member of the evaluator',
      '/policies/update_policy',
      { evaluator: { type: 'cel', expression: 'true', x: 1 } },
    ],
    ['an unknown evaluator', '/policies/update_policy', { evaluator: { type: 'rego', expression: 'true' } }],
    [
      'a bad regular expression',
      '/policies/update_policy',
      { match: { arguments: [{ path: 'a', op: 'matches', value: '(' }] } },
    ],
    [
      'an evaluator inside the network',
      '/policies/update_policy',
      { evaluator: { type: 'webhook', url: 'http://10.0.0.1/' } },
    ],
    [
      'a reminder after the end',
      '/policies/update_policy',
      { evaluator: { approval: { timeout_seconds: 5, reminder_seconds: 9 } } },
    ],
  ])('400 for %s', async (_what, path, change) => {
    const { policy_id } = await policyFor(api.client, simple);
    expect(await api.client.failure(path, { policy_id, ...change })).toBe('400 BAD_REQUEST');
  });

  test('another tenant_id is 403, and a policy of another tenant 404', async () => {
    const { policy_id } = await policyFor(api.client, simple);
    expect(await api.client.failure('/policies/get_policies', { tenant_id: 'ten_other' })).toBe('403 forbidden');
    const other = await api.clientOf(await api.otherTenant(), ['admin']);
    expect(await other.failure('/policies/delete_policy', { policy_id })).toBe('404 NOT_FOUND');
  });

  test('lists by scope and by what is switched on, the newest first', async () => {
    const first = await policyFor(api.client, simple);
    const second = await policyFor(api.client, { ...simple, scope: 'plan', enabled: false });
    const list = (filter: object) => api.client.ok('/policies/get_policies', filter, GetPoliciesResponse);
    expect((await list({})).policies).toEqual([second, first]);
    expect((await list({ scope: 'plan' })).policies).toEqual([second]);
    expect((await list({ enabled: true })).policies).toEqual([first]);
  });

  test('a test says of each policy why it decided or did not, and leaves no event', async () => {
    await policyFor(api.client, { ...simple, name: 'never', match: { tools: ['mail'] }, priority: 1 });
    await policyFor(api.client, { ...simple, name: 'off', enabled: false });
    await policyFor(api.client, { ...simple, name: 'seen', decision: 'audit', priority: 2 });
    const first = await policyFor(api.client, { ...simple, name: 'first', reason: 'Not today.', priority: 3 });
    await policyFor(api.client, { ...simple, name: 'last', priority: 4 });
    const { trace, ...found } = await tested(api.client, { scope: 'tool', action: 'call', tool: 'a' });
    expect(found).toEqual({ decision: 'deny', matched: true, policy_id: first.policy_id });
    expect(trace.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['never', 'not_matched'],
      ['seen', 'audited'],
      ['first', 'decided'],
      ['last', 'not_reached'],
      ['off', 'disabled'],
    ]);
    expect(trace.map(({ explanation }) => explanation)).toEqual([
      'tools: a does not match.',
      'The policy seen applies.',
      'Not today.',
      'first had decided.',
      'It is switched off.',
    ]);
    expect(await api.database.query("SELECT 1 FROM events WHERE category = 'policy'")).toEqual([]);
  });

  test('the client of the SDK manages and tests them', async () => {
    const { client_id: clientId, client_secret: clientSecret } = await api.credentialOf(api.tenantId, ['admin']);
    const client = new FleetClient({ url: api.baseUrl, clientId, clientSecret });
    const { policy: made } = await client.policies.createPolicy({ ...simple, name: 'made' });
    const { policyId } = made;
    expect((await client.policies.getPolicyById({ policyId })).policy).toEqual(made);
    expect((await client.policies.getPolicies({ scope: 'tool' })).policies).toEqual([made]);
    const asked = { scope: 'tool' as const, action: 'call', tool: 'a' };
    expect((await client.policies.testPolicy(asked)).decision).toBe('deny');
    expect((await client.policies.updatePolicy({ policyId, enabled: false })).policy.enabled).toBe(false);
    expect((await client.policies.testPolicy(asked)).decision).toBe('allow');
    await client.policies.deletePolicy({ policyId });
    expect((await client.policies.getPolicies()).count).toBe(0);
    client.close();
  });
});
