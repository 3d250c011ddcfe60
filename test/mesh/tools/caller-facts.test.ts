import { expect, test } from 'vitest';
import type { PolicyDecision } from '../../../contracts/api/policies/policies.js';
import type { Match } from '../../../contracts/api/policies/policy-match.js';
import { decideBy } from '../../../policy/decision.js';
import { Facts } from '../../../policy/matching/facts.js';
import { PolicySet } from '../../../policy/policy-set.js';
import type { CallParent, ToolCaller, ToolRequest } from '../../../tools/call-context.js';
import { policyRequestOf } from '../../../tools/tool-policy.js';
import { compiled } from '../../policy/policy-fixture.js';

const TYPE: ToolCaller = { tenant_id: 'ten_1', agent_type: 'coder', key: 'k' };
const connected: ToolCaller = { ...TYPE, instance_id: 'coder-1' };
const claimed: ToolCaller = { ...TYPE, instance_id: 'coder-2', is_instance_claimed: true };
const parent = (skill?: { skill_id: string | null }): CallParent => {
  return { chain: [], endsAtMs: Number.POSITIVE_INFINITY, ended: new AbortController().signal, ...skill };
};
const translating = parent({ skill_id: 'translate' });
const plain = parent({ skill_id: null });
const nested = parent();

/** The decision about a call where this policy is the only one, or, of one that allows, the only one that does. */
function decided(decision: PolicyDecision, match: Match, caller: ToolCaller, within?: CallParent): string {
  const payload = { tool: 'pay', arguments: {}, target: { skill_id: 'translate', instance_id: 'coder-1' } };
  const request: ToolRequest = { caller, payload, parent: within, signal: new AbortController().signal };
  const others = decision === 'allow' ? [{ decision: 'deny' as const, priority: 2 }] : [];
  const set = new PolicySet(compiled([{ decision, match }, ...others]));
  const verdict = decideBy(set, new Facts('ten_1', policyRequestOf(request)));
  if (verdict instanceof Promise || verdict === 'later') throw new Error('the verdict is not there at once');
  return verdict.decision;
}

const ofInstance = { instance_ids: ['coder-1'] };
const ofSkill = { skills: ['translate'] };

test.each<[string, PolicyDecision, Match, ToolCaller, CallParent | undefined, string]>([
  ['its instance, by its connection', 'deny', ofInstance, connected, plain, 'deny'],
  ['its instance, by its connection', 'allow', ofInstance, connected, plain, 'allow'],
  ['another instance that it only claims to be', 'deny', ofInstance, claimed, undefined, 'deny'],
  [
    'another instance that it only claims to be',
    'require_approval',
    ofInstance,
    claimed,
    undefined,
    'require_approval',
  ],
  ['the very instance that it only claims to be', 'allow', { instance_ids: ['coder-2'] }, claimed, undefined, 'deny'],
  ['no instance', 'deny', ofInstance, TYPE, undefined, 'deny'],
  ['the skill of its message', 'deny', ofSkill, connected, translating, 'deny'],
  ['the skill of its message', 'allow', ofSkill, connected, translating, 'allow'],
  ['a message without a skill, whatever the call is for', 'allow', ofSkill, connected, plain, 'deny'],
  ['a message without a skill, whatever the call is for', 'deny', ofSkill, connected, plain, 'allow'],
  ['no message', 'deny', ofSkill, connected, undefined, 'deny'],
  ['no message', 'allow', ofSkill, connected, undefined, 'deny'],
  ['another tool call', 'deny', ofSkill, connected, nested, 'deny'],
  ['another tool call', 'allow', ofSkill, connected, nested, 'deny'],
  ['no message, with the condition negated', 'allow', { not: ofSkill }, connected, undefined, 'deny'],
  ['no message, with the condition negated', 'deny', { not: ofSkill }, connected, undefined, 'deny'],
])('a caller of %s: %s by %j', (_caller, decision, match, caller, within, expected) => {
  expect(decided(decision, match, caller, within)).toBe(expected);
});
