import { z } from 'zod';
import { EVENT_PAYLOADS, EVENT_TYPES, type EventType } from '../events.js';
import { LIMITS } from '../limits.js';
import { AnyId, ok, pageFields, Timestamp } from '../primitives.js';
import { ADMIN, CONFLICT, EXTENSION, post } from './operation.js';

/** How serious an alert is. */
const Severity = z.enum(['info', 'warning', 'critical']);

const maxAttempts = z.literal([3, 4]).optional();
/** In an update: absent keeps the stored value, null removes it. */
const secretText = z.string().min(1).max(512).nullable().optional();
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e]{0,1024}$/;
/** Headers that the platform or HTTP itself sets. */
const RESERVED_HEADER =
  /^(host|connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|content-.*|webhook-.*|x-service-signature)$/i;

const HeaderName = z
  .string()
  .regex(HEADER_NAME, 'must be the name of a header')
  .refine((name) => !RESERVED_HEADER.test(name), { message: 'must not be a header that the platform sets' });

const STANDARD_SECRET = /^whsec_/;
/** A secret with the prefix of Standard Webhooks is base64, and its bytes are the key of `webhook-signature`. */
const WebhookSecret = z
  .string()
  .min(1)
  .max(512)
  .refine((text) => !STANDARD_SECRET.test(text) || /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(text), {
    message: 'must be base64 after whsec_',
  })
  .nullable()
  .optional();

const WebhookConfig = z.strictObject({
  url: z.string().min(1).max(2048),
  secret: WebhookSecret,
  headers: z
    .record(HeaderName, z.string().regex(HEADER_VALUE, 'must be printable ASCII of at most 1024 characters'))
    .refine((headers) => Object.keys(headers).length <= LIMITS.channelHeaders, {
      message: `must be at most ${LIMITS.channelHeaders} headers`,
    })
    .nullable()
    .optional(),
  max_attempts: maxAttempts,
});
const SlackConfig = z.strictObject({
  webhook_url: z.string().min(1).max(2048).nullable().optional(),
  bot_token: secretText,
  channel_id: z
    .string()
    .regex(/^[A-Za-z0-9#_.-]{1,80}$/)
    .optional(),
  signing_secret: secretText,
  max_attempts: maxAttempts,
});
const EmailConfig = z.strictObject({
  recipients: z.array(z.email().max(254)).min(1).max(LIMITS.ruleRecipients),
  max_attempts: maxAttempts,
});

const rest = {
  enabled: z.boolean().default(true),
  /** In an update: the channel that this one replaces, which keeps the secrets that are not given. */
  channel_id: AnyId.optional(),
  /** These are ignored, so that a rule can be sent back as it was read. */
  secrets_set: z.array(z.string()).optional(),
  unreadable: z.boolean().optional(),
  receiver: z.unknown().optional(),
};
/** A channel of a rule, as a request gives it. */
export const NotificationInput = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('webhook'), config: WebhookConfig, ...rest }),
  z.strictObject({ type: z.literal('slack'), config: SlackConfig, ...rest }),
  z.strictObject({ type: z.literal('email'), config: EmailConfig, ...rest }),
]);
export type NotificationInput = z.infer<typeof NotificationInput>;
export type ChannelType = NotificationInput['type'];

/** A receiver that has failed five times in a row: it gets probes only, the next at `next_probe_at` or soon after. */
export const UnavailableReceiver = z.object({
  state: z.literal('unavailable'),
  since: Timestamp,
  next_probe_at: Timestamp,
});
export type UnavailableReceiver = z.infer<typeof UnavailableReceiver>;

/** A channel of a rule, as answers show it: without secrets. `secrets_set` names those that are stored. */
const Notification = z.object({
  channel_id: z.string(),
  type: z.enum(['webhook', 'slack', 'email']),
  enabled: z.boolean(),
  config: z.object({
    url: z.string().optional(),
    channel_id: z.string().optional(),
    recipients: z.array(z.string()).optional(),
    max_attempts: z.int().optional(),
  }),
  secrets_set: z.array(z.string()),
  /** No key of the platform opens the stored secrets: set them anew. */
  unreadable: z.literal(true).optional(),
  receiver: UnavailableReceiver.optional(),
});
export type Notification = z.infer<typeof Notification>;

/** A type of event, or a glob of types: `agent.*`, `*.failed`, `*`. It must match at least one type. */
const EventPattern = z
  .string()
  .max(128)
  .refine((pattern) => EVENT_TYPES.some((type) => matchesType(pattern, type)), {
    message: `must match at least one event type: ${EVENT_TYPES.join(', ')}`,
  });
const scalar = z.union([z.string().max(512), z.number(), z.boolean(), z.null()]);

const Filter = z.union([scalar, z.array(scalar).min(1).max(100)]);
type Filter = z.infer<typeof Filter>;

/** Whether an event of a type can have the values that the filters name. Every event may belong to a session. */
function canPass(type: EventType, filters: Record<string, Filter>): boolean {
  const fields: Record<string, z.ZodType> = { session_id: z.string(), ...EVENT_PAYLOADS[type].shape };
  return Object.entries(filters).every(([field, wanted]) =>
    [wanted].flat().some((value) => fields[field]?.safeParse(value).success),
  );
}

/** When a rule matches. `filters`: fields of the event, or `session_id`, each with a value or a list of values of which one must be equal. */
const Condition = z
  .strictObject({
    event: EventPattern,
    filters: z
      .record(z.string().max(64), Filter)
      .refine((filters) => Object.keys(filters).length <= LIMITS.ruleFilters, {
        message: `must be at most ${LIMITS.ruleFilters} fields`,
      })
      .optional(),
  })
  .superRefine(({ event, filters = {} }, context) => {
    const types = EVENT_TYPES.filter((type) => matchesType(event, type));
    if (types.length === 0 || types.some((type) => canPass(type, filters))) return;
    const fields = [...new Set(types.flatMap((type) => Object.keys(EVENT_PAYLOADS[type].shape)))];
    const message = `no event of ${event} can match: there are the fields session_id, ${fields.join(', ')}`;
    context.addIssue({ code: 'custom', path: ['filters'], message });
  });
export type Condition = z.infer<typeof Condition>;

/** Whether a glob of event types, in which `*` stands for any characters, matches a type. */
export function matchesType(pattern: string, type: string): boolean {
  const parts = pattern.split('*');
  const first = parts.shift() ?? '';
  const last = parts.pop();
  if (last === undefined) return pattern === type;
  if (!type.startsWith(first) || !type.endsWith(last) || type.length < first.length + last.length) return false;
  let rest = type.slice(first.length, type.length - last.length);
  return parts.every((part) => {
    const at = rest.indexOf(part);
    rest = rest.slice(at + part.length);
    return at >= 0;
  });
}

const recipientsOf = (channel: NotificationInput): string[] =>
  channel.type === 'email' ? channel.config.recipients : [];

const fields = {
  name: z.string().min(1).max(128),
  condition: Condition,
  notifications: z
    .array(NotificationInput)
    .min(1)
    .max(LIMITS.channelsPerRule)
    .refine((channels) => channels.flatMap(recipientsOf).length <= LIMITS.ruleRecipients, {
      message: `must have at most ${LIMITS.ruleRecipients} recipients of emails in all`,
    }),
  severity: Severity,
  threshold: z.int().min(1).max(LIMITS.alertThresholdMax),
  window_seconds: z.int().min(1).max(86_400),
  cooldown_seconds: z
    .int()
    .min(0)
    .max(7 * 86_400),
  description: z.string().max(1024),
  enabled: z.boolean(),
  /** Slack users who may decide by a button. */
  approvers: z.array(z.string().min(1).max(128)).max(100),
};

export const NewAlertRequest = z.strictObject({
  ...fields,
  severity: fields.severity.default('warning'),
  threshold: fields.threshold.default(1),
  window_seconds: fields.window_seconds.default(60),
  cooldown_seconds: fields.cooldown_seconds.default(0),
  description: fields.description.default(''),
  enabled: fields.enabled.default(true),
  approvers: fields.approvers.default([]),
});
export type NewAlertRequest = z.infer<typeof NewAlertRequest>;

export const UpdateAlertRequest = z.strictObject({ rule_id: AnyId, ...z.strictObject(fields).partial().shape });
export type UpdateAlertRequest = z.infer<typeof UpdateAlertRequest>;

export const AlertRule = z.object({
  rule_id: z.string(),
  tenant_id: z.string(),
  name: z.string(),
  description: z.string(),
  condition: z.object({ event: z.string(), filters: z.record(z.string(), z.unknown()).optional() }),
  notifications: z.array(Notification),
  severity: Severity,
  threshold: z.int(),
  window_seconds: z.int(),
  cooldown_seconds: z.int(),
  approvers: z.array(z.string()),
  /** The credentials that made the rule or changed its condition, channels or approvers. */
  writers: z.array(z.string()),
  enabled: z.boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
  /** The principal of the last change, as in the audit. */
  updated_by: z.string().nullable(),
});
export type AlertRule = z.infer<typeof AlertRule>;

/** The answers of alert operations have no `ok`. */
export const GetAlertsResponse = z.object({
  count: z.int(),
  page: z.int(),
  page_size: z.int(),
  total_pages: z.int(),
  rules: z.array(AlertRule),
});
export const TestAlertResponse = z.object({
  results: z.array(z.object({ type: z.string(), ok: z.boolean(), message: z.string() })),
});

const ofRule = z.strictObject({ rule_id: AnyId });

export const ALERT_OPERATIONS = {
  newAlert: post('/policies/new_alert', ADMIN, 'Create an alert rule', {
    request: NewAlertRequest,
    response: AlertRule,
    ...CONFLICT,
    ...EXTENSION,
  }),
  getAlerts: post('/policies/get_alerts', ADMIN, 'List alert rules', {
    request: z.strictObject(pageFields),
    response: GetAlertsResponse,
    ...EXTENSION,
  }),
  getAlert: post('/policies/get_alert_by_id', ADMIN, 'Read an alert rule', {
    request: ofRule,
    response: AlertRule,
    ...EXTENSION,
  }),
  updateAlert: post('/policies/update_alert', ADMIN, 'Change an alert rule; only given fields change', {
    request: UpdateAlertRequest,
    response: AlertRule,
    ...EXTENSION,
  }),
  deleteAlert: post('/policies/delete_alert', ADMIN, 'Delete an alert rule; it sends nothing more', {
    request: ofRule,
    response: ok({}),
  }),
  testAlert: post('/policies/test_alert', ADMIN, 'Send a test notification to every channel of a rule', {
    request: ofRule,
    response: TestAlertResponse,
  }),
};
