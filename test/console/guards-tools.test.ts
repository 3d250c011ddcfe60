import { expect, test } from 'vitest';
import { parseGuardsSearch } from '../../console/guards/search.js';
import { changesOf, looksAt, SETTINGS } from '../../console/guards/words.js';
import { parseToolsSearch } from '../../console/tools/search.js';
import { parametersOf, policiesOf, shownTools } from '../../console/tools/words.js';
import { GUARD_CONFIGS, Guard, type GuardName, UpdateGuardRequest } from '../../contracts/api/policies/guards.js';
import type { Policy } from '../../contracts/api/policies/policies.js';
import type { OfferedTool } from '../../contracts/api/tools.js';

const NOW = Date.parse('2026-11-28T12:00:00.000Z');
const FRESH = { enabled: true, decision: 'deny', updated_at: null, updated_by: null };
const guardOf = (guard: GuardName): Guard => Guard.parse({ ...FRESH, guard, config: GUARD_CONFIGS[guard].parse({}) });

test('each setting of each guard can be edited', () => {
  for (const [guard, settings] of Object.entries(SETTINGS) as [GuardName, { name: string }[]][])
    expect(settings.map(({ name }) => name).sort()).toEqual(Object.keys(GUARD_CONFIGS[guard].shape).sort());
});

test.each([
  ['secrets', {}],
  ['secrets', { enabled: false }],
  ['egress', { config: { denied_hosts: ['x.example'] } }],
  ['limits', { decision: 'allow', config: { max_hops: 3 } }],
] as const)('of %s with %j only that is sent', (guard, edit) => {
  const stored = guardOf(guard);
  const { config = {}, ...rest } = edit as { config?: object };
  const changes = changesOf(stored, { ...stored, ...rest, config: { ...stored.config, ...config } });
  const isChanged = Object.keys(edit).length > 0;
  expect(changes).toEqual(isChanged ? { guard, ...edit } : undefined);
  expect(UpdateGuardRequest.safeParse(changes).success).toBe(isChanged);
});

test('where a guard looks', () => {
  const looks = (['path', 'egress', 'prompt_injection', 'limits'] as const).map((guard) => looksAt(guardOf(guard)));
  const calls = 'arguments of tool calls';
  expect(looks).toEqual([calls, calls, 'messages to agents, results of tool calls', 'everything']);
});

test.each([
  [{}, true],
  [{ tools: ['pay.*'] }, true],
  [{ tools: ['mail', 'p?y.send'] }, true],
  [{ tools: ['pay'] }, false],
  [{ not: { tools: ['pay.*'] } }, false],
  [{ not: { tools: ['pay.*'], agent_types: ['x'] } }, true],
])('whether a policy that matches %j may decide about pay.send: %s', (match, may) => {
  const policy = { policy_id: 'p', scope: 'tool', decision: 'deny', enabled: true, priority: 1, match } as Policy;
  expect(policiesOf([policy], 'pay.send', NOW).length > 0).toBe(may);
  const others: Policy[] = [
    { ...policy, enabled: false },
    { ...policy, scope: 'plan' },
  ];
  expect(policiesOf(others, 'pay.send', NOW)).toEqual([]);
});

test('tools of agents come first, and are found by name, description and type', () => {
  const toolOf = (name: string, fields: Partial<OfferedTool> = {}): OfferedTool => ({
    ...{ name, offered_by: ['bank'], source: 'agent', digest: '', ...fields },
  });
  const own = toolOf('plan.create', { source: 'platform', offered_by: [] });
  const tools = [own, toolOf('b'), toolOf('a', { description: 'Pays' })];
  const names = (q?: string) => shownTools(tools, q).map(({ name }) => name);
  expect(names()).toEqual(['a', 'b', 'plan.create']);
  expect([names('PAYS'), names('bank'), names('zz')]).toEqual([['a'], ['a', 'b'], []]);
});

test('what a tool takes, whatever an agent declares', () => {
  const n = { type: ['integer', 'null'], description: 'How many' };
  const properties = { n, kind: { enum: ['x', 1] }, odd: 'text' };
  expect(parametersOf({ properties, required: ['n'] })).toEqual([
    { name: 'n', type: 'integer | null', isRequired: true, description: 'How many' },
    { name: 'kind', type: '"x" | 1', isRequired: false, description: '' },
    { name: 'odd', type: 'any', isRequired: false, description: '' },
  ]);
  for (const schema of [undefined, {}, { properties: [], required: 'n' }]) expect(parametersOf(schema)).toEqual([]);
});

test('addresses that anybody wrote give only what fits', () => {
  expect(parseGuardsSearch({ guard: 'prompt_injection', more: 1 })).toEqual({ guard: 'prompt_injection' });
  expect(parseGuardsSearch({ guard: '../x' })).toEqual({});
  expect(parseToolsSearch({ q: '', tool: 'pay.send', x: 1 })).toEqual({ tool: 'pay.send' });
});
