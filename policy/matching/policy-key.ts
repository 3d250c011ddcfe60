import { type ArgumentFact, argumentValues, isArgumentFact } from './argument-values.js';
import type { Facts } from './facts.js';
import { comesLater, isUnknown, REQUEST_FACTS, type RequestFact, singleValue } from './request-facts.js';

/** What a fact must be, begin with, end with, contain or lie within, for a condition to hold: one of these is enough. */
export interface PolicyKey {
  fact: RequestFact | 'paths' | 'hosts' | ArgumentFact;
  /** The place in the arguments, for a fact of them. */
  path?: string;
  literals: readonly string[];
  starts: readonly string[];
  ends: readonly string[];
  parts: readonly string[];
  /** A number that is not less, or not more. */
  least?: number;
  most?: number;
}

const NONE: readonly string[] = [];

/** @param needs none: the condition never holds */
export function policyKey(fact: PolicyKey['fact'], needs: Partial<PolicyKey>): PolicyKey {
  return { fact, literals: NONE, starts: NONE, ends: NONE, parts: NONE, ...needs };
}

/** Whether the fact is a member of the request itself. Facts in its arguments cost more to read. */
export function isOfRequest({ fact }: Pick<PolicyKey, 'fact'>): boolean {
  return (REQUEST_FACTS as readonly string[]).includes(fact);
}

const WILDCARDS = /[*?]+/;

/** The key of the texts that these globs match; none where one of the globs is all wildcards. */
export function globKeys(fact: PolicyKey['fact'], globs: readonly string[]): PolicyKey[] {
  // `**` stands for no segment too: `/srv/**` matches `/srv`.
  const [before, behind] = fact === 'paths' ? [/\/$/, /^\//] : ['', ''];
  const literals: string[] = [];
  const starts: string[] = [];
  const ends: string[] = [];
  const parts: string[] = [];
  for (const glob of globs) {
    const [first = '', ...rest] = glob.split(WILDCARDS);
    const start = first.replace(before, '');
    const end = (rest.pop() ?? '').replace(behind, '');
    const inside = rest.map((part) => part.replace(before, '').replace(behind, ''));
    const part = inside.reduce((longest, one) => (one.length > longest.length ? one : longest), '');
    if (!WILDCARDS.test(glob)) literals.push(glob);
    else if (start !== '' && start.length >= end.length) starts.push(start);
    else if (end !== '') ends.push(end);
    else if (part !== '') parts.push(part);
    else return [];
  }
  return [policyKey(fact, { literals, starts, ends, parts })];
}

/** The values of a fact; `any`: nobody can tell, so that the conditions are asked. */
export function keyValues(
  { fact, path = '' }: Pick<PolicyKey, 'fact' | 'path'>,
  facts: Facts,
): readonly (string | number)[] | 'any' {
  if (fact === 'paths') return facts.places.hasUnsafePath ? 'any' : facts.places.paths;
  if (fact === 'hosts') return facts.places.hasUnreadableHost ? 'any' : hostTexts(facts);
  return isArgumentFact(fact) ? argumentValues(fact, path, facts) : requestTexts(fact, facts);
}

function hostTexts({ places }: Facts): string[] {
  return places.hosts.flatMap(([ascii, unicode]) => (unicode === undefined ? [ascii] : [ascii, unicode]));
}

function requestTexts(fact: RequestFact, facts: Facts): readonly string[] | 'any' {
  const skillIds = fact === 'skills' && facts.request.agent?.skill_ids;
  if (skillIds) return skillIds;
  const value = singleValue[fact](facts);
  if (value !== undefined) return [value];
  return comesLater(fact, facts) || isUnknown(fact, facts) ? 'any' : [];
}
