import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { AlertRule, type NewAlertRequest } from '../../contracts/api/alerts.js';
import { type Delivery, GetDeliveriesResponse } from '../../contracts/api/deliveries.js';
import { ErrorBody } from '../../contracts/primitives.js';
import type { Answer, ApiClient } from '../setup/platform/api-client.js';
import { until } from '../setup/until.js';

type Input = Partial<z.input<typeof NewAlertRequest>>;

/** `409 CONFLICT`, of an answer that refuses. */
export const failureOf = ({ status, body }: Answer) => `${status} ${ErrorBody.parse(body).code}`;

/** A webhook channel. */
export const webhook = (url: string, config: object = {}) =>
  ({ type: 'webhook' as const, config: { url, ...config } }) as NewAlertRequest['notifications'][number];

/** A rule on the agents of one type, which `happen` registers, so that tests do not see each other's events. */
export interface TestRule {
  rule: AlertRule;
  /** Lets the rule's event happen, and gives the agent's id. */
  happen(): Promise<string>;
}

/** Creates a rule that delivers to these channels. */
export async function ruleFor(
  client: ApiClient,
  notifications: object[],
  { event = 'agent.registered', ...rest }: Omit<Input, 'condition'> & { event?: string } = {},
): Promise<TestRule> {
  const agentType = `type-${randomUUID().slice(0, 8)}`;
  const condition = { event, filters: { agent_type: agentType } };
  const body = { name: agentType, condition, notifications, ...rest };
  const rule = await client.ok('/policies/new_alert', body, AlertRule);
  const happen = async () => {
    const instance_id = `${agentType}-${randomUUID().slice(0, 8)}`;
    const agent = { instance_id, agent_type: agentType, deployment_mode: 'connected' };
    const answer = await client.post('/agents/register', agent);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    return instance_id;
  };
  return { rule, happen };
}

/** The deliveries of a rule, newest first. */
export async function deliveriesOf(client: ApiClient, rule_id: string): Promise<Delivery[]> {
  const page = { rule_id, page_size: 100 };
  return (await client.ok('/webhooks/get_deliveries', page, GetDeliveriesResponse)).deliveries;
}

/** The deliveries of a rule once there are so many and all have ended. */
export function untilDelivered(client: ApiClient, rule_id: string, count = 1, timeoutMs?: number): Promise<Delivery[]> {
  return until(
    async () => {
      const found = await deliveriesOf(client, rule_id);
      if (found.length >= count && found.every(({ status }) => status !== 'pending')) return found;
      throw new Error(JSON.stringify(found.map(({ status, attempts }) => [status, attempts.length])));
    },
    { what: `${count} deliveries of ${rule_id} that have ended`, ...(timeoutMs && { timeoutMs }) },
  );
}
