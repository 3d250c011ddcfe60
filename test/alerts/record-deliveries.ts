import { onTestFinished } from 'vitest';
import { createAlertRelay } from '../../alerts/alert-relay.js';
import { AlertRule } from '../../contracts/api/alerts.js';
import { type Delivery, RedeliverResponse } from '../../contracts/api/deliveries.js';
import type { DeliveryInput } from '../../contracts/workflows.js';
import { attemptDelivery, type NextAttempt } from '../../deliveries/attempt-delivery.js';
import { newDeliveryCounts } from '../../deliveries/attempts.js';
import { claimQueued } from '../../deliveries/queue.js';
import { createOutbound } from '../../http/outbound.js';
import { createLogger } from '../../runtime/logger.js';
import type { ServedApi } from '../api/served-api.js';
import { decisions } from '../messages/approvals/approvals-fixture.js';
import { cleanUp } from '../setup/clean-up.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { until } from '../setup/until.js';
import { deliveriesOf, webhook } from './alert-fixture.js';

/** A credential, and a client with it. */
export interface Person {
  id: string;
  client: ApiClient;
}

/** Deliveries on the record of an API whose events get positions: a relay writes them, and each test sends them by hand. */
export function recordDeliveries(api: ServedApi, { smtpUrl }: { smtpUrl?: string } = {}) {
  const log = createLogger({ level: 'silent' });
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  const slackApiUrl = 'http://127.0.0.1:9';
  const clients = { outbound, slackApiUrl, email: { smtpUrl, from: 'fleet@example.com' } };
  const deps = { db: api.db, secrets: api.secrets, clients, log, counts: newDeliveryCounts() };
  const relay = createAlertRelay({
    ...{ db: api.db, secrets: api.secrets, log, slackApiUrl },
    baseUrl: () => api.baseUrl,
    deliveriesWritten: () => undefined,
  });
  relay.start();
  cleanUp(() => relay.stop());

  /** A rule about questions, for one test. */
  async function ruleBy(
    { client }: Person,
    notifications: object[],
    event = 'message.input_required',
    approvers: string[] = [],
  ): Promise<AlertRule> {
    const body = { name: 'asks', condition: { event }, notifications, approvers };
    const rule = await client.ok('/policies/new_alert', body, AlertRule);
    onTestFinished(async () => void (await api.client.post('/policies/delete_alert', { rule_id: rule.rule_id })));
    return rule;
  }

  /** Has the channel of a rule lead elsewhere. */
  async function point({ client }: Person, { rule_id, notifications }: AlertRule, url: string, config: object = {}) {
    const [channel] = notifications;
    const moved = { ...webhook(url, config), channel_id: channel?.channel_id };
    await client.ok('/policies/update_alert', { rule_id, notifications: [moved] }, AlertRule);
  }

  const attempt = (input: DeliveryInput, made: number | null, signal = new AbortController().signal) =>
    attemptDelivery(deps, input, made, signal);

  /** Makes the first attempt of everything that waits. */
  async function sendQueued(): Promise<{ input: DeliveryInput; next: NextAttempt | null }[]> {
    const sent: { input: DeliveryInput; next: NextAttempt | null }[] = [];
    for (;;) {
      const claimed = await claimQueued(api.db);
      if (claimed.length === 0) return sent;
      for (const { input } of claimed) sent.push({ input, next: await attempt(input, null) });
    }
  }

  /** The deliveries of a rule, oldest first, once there are so many; they are not sent yet. */
  async function announced({ rule_id }: AlertRule, count = 1): Promise<Delivery[]> {
    const found = await until(
      async () => {
        const deliveries = await deliveriesOf(api.client, rule_id);
        return deliveries.length >= count && deliveries;
      },
      { what: `${count} deliveries` },
    );
    return found.reverse();
  }

  return {
    person: decisions(api).person,
    ruleBy,
    point,
    attempt,
    sendQueued,
    announced,
    /** Queues a delivery again. */
    redeliver: ({ client }: Person, delivery: Delivery | undefined) =>
      client.ok('/webhooks/redeliver', { delivery_id: delivery?.delivery_id }, RedeliverResponse),
  };
}
