import type { PolicyDecision } from '../../contracts/api/policies/policies.js';
import type { Conditions, Match } from '../../contracts/api/policies/policy-match.js';
import { hostGlob } from '../places/hosts.js';
import { compileArgument } from './argument-conditions.js';
import type { Facts } from './facts.js';
import { compileGlobs, compilePathGlobs } from './globs.js';
import { globKeys, type PolicyKey } from './policy-key.js';
import { comesLater, isUnknown, REQUEST_FACTS, type RequestFact, singleValue } from './request-facts.js';

/** Whether a condition holds; `later`: it depends on what is not known yet. */
export type Truth = boolean | 'later';

/** A condition of a policy's `match`, ready to be asked. */
export interface Condition {
  /** The member of `match`: `tools`, `not`. */
  name: string;
  holds(facts: Facts): Truth;
  /** Why it does not hold, for a trace. */
  explain(facts: Facts): string;
  /** Keys by which an index finds the policy: where one does not hold, the condition does not either. */
  keys: readonly PolicyKey[];
}

type Restricts = { restrictive: boolean };

/** A fact that nobody knows fits every condition that restricts, and none that permits. */
function single(name: RequestFact, globs: readonly string[], { restrictive }: Restricts): Condition {
  const matches = compileGlobs(globs);
  const read = singleValue[name];
  return {
    name,
    holds: (facts) => {
      const value = read(facts);
      if (value !== undefined) return matches(value, facts.budget) ?? restrictive;
      if (comesLater(name, facts)) return 'later';
      return isUnknown(name, facts) && restrictive;
    },
    explain: (facts) => `${name}: ${read(facts) ?? 'nothing'} does not match.`,
    keys: globKeys(name, globs),
  };
}

/** Whether several values fit: one is enough to restrict, and all are needed to permit. */
function ofMany<Value>(values: readonly Value[], fits: (value: Value) => boolean, restrictive: boolean): boolean {
  return restrictive ? values.some(fits) : values.length > 0 && values.every(fits);
}

/** Places that an explanation names: arguments may hold tens of thousands. */
const NAMED_MAX = 5;

/** Some names in a sentence. @param none what it says where there are none */
function listed(names: readonly string[], none: string): string {
  const more = names.length - NAMED_MAX;
  return `${names.slice(0, NAMED_MAX).join(', ') || none}${more > 0 ? ` and ${more} more` : ''}`;
}

/** For an agent that registers, about all its skills, as `paths` and `hosts`; else about the skill that a message is for. */
function skills(globs: readonly string[], restricts: Restricts): Condition {
  const matches = compileGlobs(globs);
  const ofOne = single('skills', globs, restricts);
  const { restrictive } = restricts;
  return {
    name: 'skills',
    holds: (facts) => {
      const ids = facts.request.agent?.skill_ids;
      if (!ids) return ofOne.holds(facts);
      return ofMany(ids, (id) => matches(id, facts.budget) ?? restrictive, restrictive);
    },
    explain: (facts) => {
      const ids = facts.request.agent?.skill_ids;
      return ids ? `skills: ${listed(ids, 'none')} does not match.` : ofOne.explain(facts);
    },
    keys: ofOne.keys,
  };
}

/** A place that nobody can tell fits every condition that restricts, and none that permits. */
function paths(globs: readonly string[], { restrictive }: Restricts): Condition {
  const matches = compilePathGlobs(globs);
  return {
    name: 'paths',
    holds: ({ places, budget }) =>
      places.hasUnsafePath
        ? restrictive
        : ofMany(places.paths, (path) => matches(path, budget) ?? restrictive, restrictive),
    explain: ({ places }) => `paths: ${listed(places.paths, 'nothing')} does not match.`,
    keys: globKeys('paths', globs),
  };
}

function hosts(globs: readonly string[], { restrictive }: Restricts): Condition {
  const ofHosts = globs.map(hostGlob);
  const matches = compileGlobs(ofHosts);
  return {
    name: 'hosts',
    holds: ({ places, budget }) =>
      places.hasUnreadableHost
        ? restrictive
        : ofMany(
            places.hosts,
            (forms) => forms.some((form) => matches(form ?? '', budget) ?? restrictive),
            restrictive,
          ),
    explain: ({ places: { hosts } }) => {
      const names = hosts.map(([host]) => host);
      return `hosts: ${listed(names, 'nothing')} does not match.`;
    },
    keys: globKeys('hosts', ofHosts),
  };
}

function argumentConditions(all: NonNullable<Conditions['arguments']>, { restrictive }: Restricts): Condition[] {
  return all.map((condition) => {
    const { holds, keys } = compileArgument(condition, restrictive);
    const { path, op, value } = condition;
    return {
      name: 'arguments',
      holds: ({ request, budget }) => holds(request.arguments ?? {}, budget),
      explain: () => `arguments: ${path} ${op} ${JSON.stringify(value)} does not hold.`,
      keys,
    };
  });
}

/** The conditions of a `match`, the cheap ones first. */
function compileConditions(match: Conditions, restricts: Restricts): Condition[] {
  const singles = REQUEST_FACTS.filter((name) => name !== 'skills');
  return [
    ...singles.flatMap((name) => (match[name] ? [single(name, match[name], restricts)] : [])),
    ...(match.skills ? [skills(match.skills, restricts)] : []),
    ...(match.arguments ? argumentConditions(match.arguments, restricts) : []),
    ...(match.paths ? [paths(match.paths, restricts)] : []),
    ...(match.hosts ? [hosts(match.hosts, restricts)] : []),
  ];
}

/** The first condition that does not hold; else whether all hold. */
export function firstUnmet(conditions: readonly Condition[], facts: Facts): Condition | true | 'later' {
  let truth: true | 'later' = true;
  for (const condition of conditions) {
    const holds = condition.holds(facts);
    if (holds === false) return condition;
    if (holds === 'later') truth = 'later';
  }
  return truth;
}

/** Whether all conditions hold. */
export function allHold(conditions: readonly Condition[], facts: Facts): Truth {
  const unmet = firstUnmet(conditions, facts);
  return typeof unmet === 'object' ? false : unmet;
}

function negation(conditions: Condition[]): Condition {
  return {
    name: 'not',
    holds: (facts) => {
      const holds = allHold(conditions, facts);
      return holds === 'later' ? 'later' : !holds;
    },
    explain: () => 'not: its conditions hold.',
    keys: [],
  };
}

/**
 * Compiles what a policy matches. Where a fact cannot be told, or has several values, the policy is taken to restrict rather than to permit:
 * a policy that allows wants all values to match, any other wants one.
 * @throws PlatformError BAD_REQUEST for a bad regular expression
 */
export function compileMatch({ not, ...match }: Match, decision: PolicyDecision): Condition[] {
  const restrictive = decision !== 'allow';
  const conditions = compileConditions(match, { restrictive });
  return not ? [...conditions, negation(compileConditions(not, { restrictive: !restrictive }))] : conditions;
}
