import { z } from 'zod';
import { AnyId, Instant, ok, okPage, pageFields, Timestamp } from '../primitives.js';
import { UnavailableReceiver } from './alerts.js';
import { ADMIN, CONFLICT, EXTENSION, PUBLIC, post } from './operation.js';

/** One attempt of a delivery. `status_code` is null when no answer came; for email it is the reply code of SMTP. */
const DeliveryAttempt = z.object({
  at: Timestamp,
  status_code: z.int().nullable(),
  response_time_ms: z.int(),
  success: z.boolean(),
  error: z.string().optional(),
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** `pending`: waits, or is being sent; `dropped`: its rule, channel or push configuration was removed or switched off, or an operator canceled it. */
const DeliveryStatus = z.enum(['pending', 'delivered', 'failed', 'dropped']);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/**
 * A delivery without its body, which may hold a callback token. Of a push notification `rule_id` is null, `task_id` and `config_id` name its
 * configuration, and `event_type` is `task.` and the state that it reports.
 */
export const Delivery = z.object({
  delivery_id: z.string(),
  rule_id: z.string().nullable(),
  task_id: z.string().optional(),
  config_id: z.string().optional(),
  event_type: z.string(),
  url: z.string(),
  status: DeliveryStatus,
  attempts: z.array(DeliveryAttempt),
  created_at: Timestamp,
  /** Of a pending delivery that was attempted: when the next attempt is due. */
  next_attempt_at: Timestamp.optional(),
  /** Of a pending delivery that waits until its receiver answers again. */
  receiver: UnavailableReceiver.optional(),
});
export type Delivery = z.infer<typeof Delivery>;

export const GetDeliveriesRequest = z.strictObject({
  /** Only this one. */
  delivery_id: AnyId.optional(),
  rule_id: AnyId.optional(),
  /** Only the push notifications of this task. */
  task_id: AnyId.optional(),
  event_type: z.string().min(1).max(128).optional(),
  /** True: delivered; false: failed or dropped. */
  success: z.boolean().optional(),
  status: DeliveryStatus.optional(),
  /** Made at or after this time. */
  since: Instant.optional(),
  ...pageFields,
});
export type GetDeliveriesRequest = z.infer<typeof GetDeliveriesRequest>;
export const GetDeliveriesResponse = okPage({ deliveries: z.array(Delivery) });
export const RedeliverResponse = ok({ delivery_id: z.string(), status: DeliveryStatus });

export const DELIVERY_OPERATIONS = {
  getDeliveries: post('/webhooks/get_deliveries', ADMIN, 'List deliveries with their attempts, newest first', {
    request: GetDeliveriesRequest,
    response: GetDeliveriesResponse,
    ...EXTENSION,
  }),
  redeliver: post('/webhooks/redeliver', ADMIN, 'Send a delivery again under the same delivery_id', {
    request: z.strictObject({ delivery_id: AnyId }),
    response: RedeliverResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
  slackInteraction: post('/slack/interactions', PUBLIC, "A button pressed in Slack; verified by Slack's signature", {
    request: z.strictObject({ payload: z.string() }),
    response: ok({}),
    form: true,
    ...EXTENSION,
    statuses: [409, 410],
  }),
};
