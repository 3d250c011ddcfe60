import type { Match } from '../../contracts/api/policies/policy-match.js';
import type { Facts, LaterFact } from './facts.js';

/** Facts of a request that policies compare with globs. */
export const KEY_FACTS = ['tools', 'skills', 'instance_ids', 'agent_types', 'actions'] as const;
export type KeyFact = (typeof KEY_FACTS)[number];

const PREFIX = /^[^*?]+\*$/;
const LITERAL = /^[^*?]+$/;

/** What a fact must be, or begin with, for a policy to match. */
export interface PolicyKey {
  fact: KeyFact;
  literals: readonly string[];
  prefixes: readonly string[];
}

/** The conditions by each of which a policy can be found without being looked at: those whose globs are texts and beginnings of texts. */
export function policyKeys(match: Match): PolicyKey[] {
  return KEY_FACTS.flatMap((fact) => {
    const globs = match[fact];
    if (!globs?.every((glob) => LITERAL.test(glob) || PREFIX.test(glob))) return [];
    const literals = globs.filter((glob) => LITERAL.test(glob));
    const prefixes = globs.filter((glob) => !LITERAL.test(glob)).map((glob) => glob.slice(0, -1));
    return [{ fact, literals, prefixes }];
  });
}

/** The index cannot tell: the conditions are asked. */
const SEVERAL = { several: true } as const;

const LATER: Partial<Record<KeyFact, LaterFact>> = {
  agent_types: 'agent_type',
  instance_ids: 'instance_id',
  skills: 'skill_id',
};

/** The value of a fact, undefined where a request has none; `several`: it has more, or is not known yet. */
export function keyValue(fact: KeyFact, { request, later }: Facts): string | undefined | { several: true } {
  const { agent } = request;
  if (fact === 'skills' && agent?.skill_ids) return SEVERAL;
  const value = {
    tools: request.tool,
    actions: request.action,
    agent_types: agent?.agent_type,
    instance_ids: agent?.instance_id,
    skills: agent?.skill_id,
  }[fact];
  const laterFact = LATER[fact];
  return value === undefined && laterFact !== undefined && later.includes(laterFact) ? SEVERAL : value;
}
