import type { z } from 'zod';
import type { AlertRule, NewAlertRequest, Notification } from '../../contracts/api/alerts.js';
import { numberText } from '../parts/texts.js';

type NewRule = z.input<typeof NewAlertRequest>;
type Channel = NewRule['notifications'][number];

/** A channel as a form has it. A secret that stays empty keeps what is stored. */
export interface ChannelDraft {
  /** Of the row in the form. */
  key: string;
  channel_id?: string;
  type: Notification['type'];
  enabled: boolean;
  url: string;
  recipients: string;
  slack_channel: string;
  secret: string;
  webhook_url: string;
  bot_token: string;
  signing_secret: string;
  /** Names of the secrets that are stored. */
  stored: readonly string[];
  /** Three where nothing is said. */
  max_attempts: 4 | undefined;
}

/** A rule as a form has it. */
export interface RuleDraft {
  name: string;
  description: string;
  event: string;
  /** JSON; empty for none. */
  filters: string;
  severity: AlertRule['severity'];
  threshold: string;
  window_seconds: string;
  cooldown_seconds: string;
  approvers: string;
  channels: ChannelDraft[];
}

/** A channel that nothing is known of yet. */
export function emptyChannel(type: ChannelDraft['type'] = 'webhook'): ChannelDraft {
  const secrets = { secret: '', webhook_url: '', bot_token: '', signing_secret: '' };
  const key = crypto.randomUUID();
  return {
    key,
    type,
    enabled: true,
    url: '',
    recipients: '',
    slack_channel: '',
    ...secrets,
    stored: [],
    max_attempts: undefined,
  };
}

function channelDraft({ channel_id, type, enabled, config, secrets_set }: Notification): ChannelDraft {
  return {
    ...emptyChannel(type),
    ...{
      key: channel_id,
      channel_id,
      enabled,
      stored: secrets_set,
      max_attempts: config.max_attempts === 4 ? 4 : undefined,
    },
    url: config.url ?? '',
    recipients: config.recipients?.join(', ') ?? '',
    slack_channel: config.channel_id ?? '',
  };
}

/** The form of a rule, or of a new one. */
export function draftOf(rule?: AlertRule): RuleDraft {
  const filters = rule?.condition.filters;
  return {
    name: rule?.name ?? '',
    description: rule?.description ?? '',
    event: rule?.condition.event ?? '',
    filters: filters && Object.keys(filters).length > 0 ? JSON.stringify(filters) : '',
    severity: rule?.severity ?? 'warning',
    threshold: String(rule?.threshold ?? 1),
    window_seconds: String(rule?.window_seconds ?? 60),
    cooldown_seconds: String(rule?.cooldown_seconds ?? 0),
    approvers: rule?.approvers.join(', ') ?? '',
    channels: rule ? rule.notifications.map(channelDraft) : [emptyChannel()],
  };
}

const listOf = (text: string) =>
  text
    .split(/[,\s]+/)
    .map((one) => one.trim())
    .filter((one) => one !== '');

function channelOf(draft: ChannelDraft): Channel {
  const { type, enabled, channel_id, max_attempts } = draft;
  const rest = { enabled, ...(channel_id && { channel_id }) };
  const attempts = max_attempts && { max_attempts };
  const given = (name: 'secret' | 'webhook_url' | 'bot_token' | 'signing_secret') =>
    draft[name] !== '' && { [name]: draft[name] };
  switch (type) {
    case 'webhook':
      return { type, ...rest, config: { url: draft.url.trim(), ...given('secret'), ...attempts } };
    case 'slack': {
      const channel = draft.slack_channel.trim();
      const secrets = { ...given('webhook_url'), ...given('bot_token'), ...given('signing_secret') };
      return { type, ...rest, config: { ...(channel && { channel_id: channel }), ...secrets, ...attempts } };
    }
    case 'email':
      return { type, ...rest, config: { recipients: listOf(draft.recipients), ...attempts } };
    default:
      return type satisfies never;
  }
}

/** The rule that a form describes. @throws SyntaxError where the filters are no JSON */
export function bodyOf(draft: RuleDraft): Omit<NewRule, 'enabled'> {
  const filters = draft.filters.trim() === '' ? undefined : JSON.parse(draft.filters);
  return {
    name: draft.name.trim(),
    description: draft.description.trim(),
    condition: { event: draft.event.trim(), ...(filters !== undefined && { filters }) },
    severity: draft.severity,
    threshold: Number(draft.threshold),
    window_seconds: Number(draft.window_seconds),
    cooldown_seconds: Number(draft.cooldown_seconds),
    approvers: listOf(draft.approvers),
    notifications: draft.channels.map(channelOf),
  };
}

/** The members that a form has changed: whoever changes a condition or a channel becomes a writer of the rule. @throws SyntaxError */
export function changedMembers(rule: AlertRule, draft: RuleDraft): Partial<Omit<NewRule, 'enabled'>> {
  const before = bodyOf(draftOf(rule));
  return Object.fromEntries(
    Object.entries(bodyOf(draft)).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof typeof before]),
    ),
  );
}

/** `agent.health_changed where status is unhealthy or offline`. */
export function conditionText({ event, filters = {} }: AlertRule['condition']): string {
  const each = Object.entries(filters).map(([field, wanted]) => `${field} is ${[wanted].flat().join(' or ')}`);
  return each.length === 0 ? event : `${event} where ${each.join(' and ')}`;
}

/** How often it has to happen. */
export function frequencyText({ threshold, window_seconds, cooldown_seconds }: AlertRule): string {
  const silent = cooldown_seconds > 0 ? `, then silent for ${numberText(cooldown_seconds)} s` : '';
  if (threshold === 1) return `each event${silent}`;
  return `${numberText(threshold)} events within ${numberText(window_seconds)} s${silent}`;
}

/** Where a channel leads. */
export function addressOf({ type, config }: Pick<Notification, 'type' | 'config'>): string {
  if (type === 'email') return config.recipients?.join(', ') ?? '';
  return config.url ?? config.channel_id ?? (type === 'slack' ? 'an incoming webhook' : '');
}
