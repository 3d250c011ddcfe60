import type { ListedAgent } from '../../contracts/api/agents.js';
import type { Delivery } from '../../contracts/api/deliveries.js';
import type { MessageGroup, WaitsFor } from '../../contracts/api/messages.js';
import type { TenantLimitsResponse } from '../../contracts/api/tenants/tenants.js';
import { answerText } from '../alerts/search.js';
import { instanceName } from '../fleet/instance-name.js';

/** Something that is used up to this share is near its end. */
export const NEAR = 0.8;

export interface Quota {
  name: string;
  used: number;
  limit: number;
  /** Of the limit. */
  share: number;
  /** When it begins anew. */
  ends_at: string;
}

/** The quotas of a tenant that are near their ends, the nearest first. */
export function nearQuotas({ limits, used, day_ends_at, month_ends_at }: TenantLimitsResponse): Quota[] {
  const all = [
    { name: 'messages of today', used: used.messages, limit: limits.messages_per_day, ends_at: day_ends_at },
    { name: 'tokens of today', used: used.tokens, limit: limits.tokens_per_day, ends_at: day_ends_at },
    { name: 'US dollars of this month', used: used.cost_usd, limit: limits.cost_usd_per_month, ends_at: month_ends_at },
  ];
  const near = all.flatMap((quota) => {
    const { limit, used: spent } = quota;
    const share = limit ? spent / limit : 1;
    return limit !== null && share >= NEAR ? [{ ...quota, limit, share }] : [];
  });
  return near.sort((one, other) => other.share - one.share);
}

/** Reasons for which messages are stuck, without people: what they are asked is in the inbox. */
export function stuckReasons(groups: readonly MessageGroup[]): { kind: WaitsFor['kind']; count: number }[] {
  return groups.flatMap(({ key, count }) => (key === 'person' ? [] : [{ kind: key as WaitsFor['kind'], count }]));
}

/** `payments-1 (AGENT_TIMEOUT)`, `… and 3 more`. */
export function agentsText(agents: readonly ListedAgent[], count: number): string {
  const named = agents
    .slice(0, 3)
    .map(({ instance_id, last_error }) => instanceName(instance_id) + (last_error ? ` (${last_error})` : ''));
  return [...named, ...(count > named.length ? [`and ${count - named.length} more`] : [])].join(', ');
}

/** Where deliveries do not arrive, and why. */
export function deliveriesText(deliveries: readonly Delivery[]): string {
  const hosts = deliveries.map(({ url, attempts }) => {
    const host = URL.canParse(url) ? new URL(url).host || url : url;
    return `${host} (${answerText(attempts.at(-1))})`;
  });
  return [...new Set(hosts)].slice(0, 3).join(', ');
}
