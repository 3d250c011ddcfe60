import type { Match } from '../../contracts/api/policies/policy-match.js';
import { hostGlob } from '../places/hosts.js';
import { comparedText, valuesAt } from './argument-conditions.js';
import type { Facts, LaterFact } from './facts.js';

/** Facts of a request that policies compare with globs. */
const REQUEST_FACTS = ['tools', 'skills', 'instance_ids', 'agent_types', 'actions'] as const;
type RequestFact = (typeof REQUEST_FACTS)[number];

/** What a fact must be, begin with or end with, for a policy to match. */
export interface PolicyKey {
  /** `arguments`: the values at a path. */
  fact: RequestFact | 'paths' | 'hosts' | 'arguments';
  path?: string;
  literals: readonly string[];
  starts: readonly string[];
  ends: readonly string[];
}

type KeyTexts = Omit<PolicyKey, 'fact' | 'path'>;

const LITERAL = /^[^*?]+$/;
/** Up to the first wildcard, and from the last one on. */
const START = /^[^*?]*/;
const END = /[^*?]*$/;

/** What texts must be that globs match; null where one of them has no text of its own at its start or end. */
function textsOf(globs: readonly string[], { ofPaths = false } = {}): KeyTexts | null {
  const texts = { literals: [] as string[], starts: [] as string[], ends: [] as string[] };
  for (const glob of globs) {
    // `**` stands for no segment too: `/srv/**` matches `/srv`.
    const start = (START.exec(glob)?.[0] ?? '').replace(ofPaths ? /\/$/ : '', '');
    const end = (END.exec(glob)?.[0] ?? '').replace(ofPaths ? /^\// : '', '');
    if (LITERAL.test(glob)) texts.literals.push(glob);
    else if (start === '' && end === '') return null;
    else if (start.length >= end.length) texts.starts.push(start);
    else texts.ends.push(end);
  }
  return texts;
}

function globKey(fact: PolicyKey['fact'], texts: KeyTexts | null): PolicyKey[] {
  return texts ? [{ fact, ...texts }] : [];
}

/** The conditions on what a request says of itself by each of which a policy can be found without being looked at. */
export function requestKeys(match: Match): PolicyKey[] {
  return REQUEST_FACTS.flatMap((fact) => globKey(fact, match[fact] ? textsOf(match[fact]) : null));
}

/** As `requestKeys`, the conditions on what its arguments hold, which is dearer to find out. */
export function contentKeys({ paths, hosts, arguments: conditions = [] }: Match): PolicyKey[] {
  const ofArguments = conditions.flatMap(({ path, op, value }): PolicyKey[] => {
    if (op !== 'eq' && op !== 'in') return [];
    const literals = [...new Set([value].flat().map(comparedText))];
    return [{ fact: 'arguments', path, literals, starts: [], ends: [] }];
  });
  return [
    ...ofArguments,
    ...globKey('paths', paths ? textsOf(paths, { ofPaths: true }) : null),
    ...globKey('hosts', hosts ? textsOf(hosts.map(hostGlob)) : null),
  ];
}

const SINGLE: Record<RequestFact, (facts: Facts) => string | undefined> = {
  tools: ({ request }) => request.tool,
  actions: ({ request }) => request.action,
  agent_types: ({ request }) => request.agent?.agent_type,
  instance_ids: ({ request }) => request.agent?.instance_id,
  skills: ({ request }) => request.agent?.skill_id,
};
const LATER: Partial<Record<RequestFact, LaterFact>> = {
  agent_types: 'agent_type',
  instance_ids: 'instance_id',
  skills: 'skill_id',
};

/** The texts of a fact; `any`: nobody can tell, so that the conditions are asked. */
export function keyTexts(
  { fact, path = '' }: Pick<PolicyKey, 'fact' | 'path'>,
  facts: Facts,
): readonly string[] | 'any' {
  if (fact === 'paths') return facts.places.hasUnsafePath ? 'any' : facts.places.paths;
  if (fact === 'hosts') return facts.places.hasUnreadableHost ? 'any' : hostTexts(facts);
  if (fact === 'arguments') return argumentTexts(path, facts);
  const skillIds = fact === 'skills' && facts.request.agent?.skill_ids;
  if (skillIds) return skillIds;
  const value = SINGLE[fact](facts);
  if (value !== undefined) return [value];
  const laterFact = LATER[fact];
  return laterFact !== undefined && facts.later.includes(laterFact) ? 'any' : [];
}

function hostTexts({ places }: Facts): string[] {
  return places.hosts.flatMap(([ascii, unicode]) => (unicode === undefined ? [ascii] : [ascii, unicode]));
}

function argumentTexts(path: string, { request, budget }: Facts): readonly string[] | 'any' {
  if (budget.isSpent) return 'any';
  const values = valuesAt(request.arguments ?? {}, path.split('.'));
  budget.spend(10 + values.length);
  const texts: string[] = [];
  for (const value of values) {
    // An object may hold the expected value somewhere.
    if (typeof value === 'object' && value !== null) return 'any';
    texts.push(comparedText(value as string | number | boolean | null));
  }
  return texts;
}
