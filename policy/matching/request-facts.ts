import type { Facts, LaterFact } from './facts.js';

/** Facts of a request that policies compare with globs, in the order in which conditions are asked. */
export const REQUEST_FACTS = ['tools', 'actions', 'agent_types', 'instance_ids', 'skills'] as const;
export type RequestFact = (typeof REQUEST_FACTS)[number];

/** The one value of a fact, where the request says it; of skills that which a message is for. */
export const singleValue: Readonly<Record<RequestFact, (facts: Facts) => string | undefined>> = {
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

const UNKNOWN: Partial<Record<RequestFact, 'instance_id' | 'skill_id'>> = {
  instance_ids: 'instance_id',
  skills: 'skill_id',
};

/** Whether nobody knows a fact of the request. */
export function isUnknown(fact: RequestFact, { request }: Facts): boolean {
  const name = UNKNOWN[fact];
  return name !== undefined && (request.unknown?.includes(name) ?? false);
}

/** Whether the request does not say a fact yet, and will. */
export function comesLater(fact: RequestFact, { later }: Facts): boolean {
  const name = LATER[fact];
  return name !== undefined && later.includes(name);
}
