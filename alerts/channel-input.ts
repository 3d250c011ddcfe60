import type { Notification, NotificationInput } from '../contracts/api/alerts.js';
import { originOf } from '../deliveries/attempts.js';
import type { Channel } from '../deliveries/channels/channel-store.js';
import { type Outbound, OutboundError } from '../http/outbound.js';
import type { SigningSecrets } from '../http/webhook-signatures.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';

/** For so long after a rotation a webhook is signed by the previous secret too. */
const OVERLAP_MS = 86_400_000;
/** Previous secrets of one webhook: of more rotations in a day, the oldest secret ends. */
const PREVIOUS_MAX = 4;

type NewChannel = Omit<Channel, 'rule_id'>;

function checkUrl(outbound: Pick<Outbound, 'checkUrl'>, field: string, url: string | null | undefined): void {
  if (url === undefined || url === null) return;
  try {
    outbound.checkUrl(url);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const problem = error.code === 'FORBIDDEN_ADDRESS' ? 'must not name a private address' : 'must be an http(s) URL';
    throw new PlatformError('BAD_REQUEST', `${field}: ${problem}`);
  }
}

/** A given value replaces the stored one, null removes it, and an absent one keeps it. */
function merged<Value>(given: Value | null | undefined, stored: Value | undefined): Value | undefined {
  return given === undefined ? stored : (given ?? undefined);
}

/** Without the members that are undefined. */
function present<Fields extends object>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;
}

/** The keys of a webhook's signatures after a change; a replaced secret stays valid for a day, however often it is replaced meanwhile. */
export function rotated(given: string | null | undefined, stored: SigningSecrets, nowMs: number): SigningSecrets {
  const secret = merged(given, stored.secret);
  if (secret === undefined) return {};
  const replaced = stored.secret === undefined ? [] : [{ secret: stored.secret, until: nowMs + OVERLAP_MS }];
  const previous = [...replaced, ...(stored.previous_secrets ?? [])]
    .filter((one) => one.secret !== secret && one.until > nowMs)
    .slice(0, PREVIOUS_MAX);
  return { secret, ...(previous.length > 0 && { previous_secrets: previous }) };
}

/** @throws PlatformError BAD_REQUEST unless all secrets of a channel are given, or removed by null, whose stored ones cannot be read */
function requireSecrets(config: object, names: string[]): void {
  if (names.every((name) => (config as Record<string, unknown>)[name] !== undefined)) return;
  const all = names.join(' and ');
  throw new PlatformError(
    'BAD_REQUEST',
    `notifications.config: the stored secrets of the channel cannot be read. Give ${all} anew, or null.`,
  );
}

/** The channel that an input replaces: by its id, else one of the same kind and address. */
function replacedBy(input: NotificationInput, channels: NewChannel[]): NewChannel | undefined {
  const ofKind = channels.filter(({ type }) => type === input.type);
  if (input.channel_id !== undefined) {
    const named = ofKind.find(({ channel_id }) => channel_id === input.channel_id);
    if (!named) throw new PlatformError('BAD_REQUEST', 'notifications: the rule has no channel of that channel_id');
    return named;
  }
  switch (input.type) {
    case 'webhook':
      return ofKind.find(({ config }) => config.url === input.config.url);
    case 'slack':
      return ofKind.find(({ config }) => config.channel_id === input.config.channel_id);
    case 'email':
      return ofKind.find(({ config }) => String(config.recipients) === String(input.config.recipients));
    default:
      return input satisfies never;
  }
}

/** The part of a channel that its kind has a say in. */
type Settings = Pick<NewChannel, 'config' | 'secrets'>;

function webhook(
  { config }: Extract<NotificationInput, { type: 'webhook' }>,
  stored: NewChannel | undefined,
  nowMs: number,
): Settings {
  const { url, secret, headers, max_attempts } = config;
  // Secrets stay with their receiver: one that is moved elsewhere gets them only by who knows them.
  const isSame = stored !== undefined && originOf(stored.config.url ?? '') === originOf(url);
  if (isSame && stored.unreadable) requireSecrets({ secret, headers }, ['secret', 'headers']);
  const old = isSame ? stored.secrets : {};
  const kept = merged(headers, old.headers);
  const secrets = { ...rotated(secret, old, nowMs), ...(kept && Object.keys(kept).length > 0 && { headers: kept }) };
  return { config: { url, ...present({ max_attempts }) }, secrets };
}

function slack({ config }: Extract<NotificationInput, { type: 'slack' }>, stored: NewChannel | undefined): Settings {
  if (stored?.unreadable) requireSecrets(config, ['webhook_url', 'bot_token', 'signing_secret']);
  const old = stored?.secrets ?? {};
  const { channel_id, max_attempts } = config;
  const webhook_url = merged(config.webhook_url, old.webhook_url);
  const bot_token = merged(config.bot_token, old.bot_token);
  const signing_secret = merged(config.signing_secret, old.signing_secret);
  if (webhook_url === undefined && (bot_token === undefined || channel_id === undefined))
    throw new PlatformError(
      'BAD_REQUEST',
      'notifications.config: Slack needs webhook_url, or bot_token and channel_id',
    );
  return {
    config: present({ channel_id, max_attempts }),
    secrets: present({ webhook_url, bot_token, signing_secret }),
  };
}

function email({ config }: Extract<NotificationInput, { type: 'email' }>): Settings {
  const { recipients, max_attempts } = config;
  return { config: { recipients, ...present({ max_attempts }) }, secrets: {} };
}

function settingsOf(input: NotificationInput, stored: NewChannel | undefined, nowMs: number): Settings {
  switch (input.type) {
    case 'webhook':
      return webhook(input, stored, nowMs);
    case 'slack':
      return slack(input, stored);
    case 'email':
      return email(input);
    default:
      return input satisfies never;
  }
}

/** @throws PlatformError BAD_REQUEST for an address that may not be called */
function checkAddress(outbound: Pick<Outbound, 'checkUrl'>, input: NotificationInput): void {
  switch (input.type) {
    case 'webhook':
      checkUrl(outbound, 'notifications.config.url', input.config.url);
      break;
    case 'slack':
      checkUrl(outbound, 'notifications.config.webhook_url', input.config.webhook_url);
      break;
    case 'email':
      break;
    default:
      input satisfies never;
  }
}

/**
 * Makes the channels of a rule from a request. A channel that replaces a stored one keeps its id, and the secrets that are not given.
 * @param stored the channels of the rule so far
 * @throws PlatformError BAD_REQUEST naming the field: a URL that is not http(s), has credentials or names a forbidden address; an unknown
 * `channel_id`; a Slack channel without an address
 */
export function channelsFrom(
  outbound: Pick<Outbound, 'checkUrl'>,
  inputs: NotificationInput[],
  stored: NewChannel[],
  nowMs: number,
): NewChannel[] {
  const left = new Set(stored);
  return inputs.map((input) => {
    checkAddress(outbound, input);
    const replaced = replacedBy(input, [...left]);
    if (replaced) left.delete(replaced);
    const { type, enabled } = input;
    return { channel_id: replaced?.channel_id ?? newId('chn'), type, enabled, ...settingsOf(input, replaced, nowMs) };
  });
}

/** A channel as answers show it: without its secrets. */
export function shownChannel(channel: NewChannel): Notification {
  const { channel_id, type, enabled, config, secrets, unreadable } = channel;
  const { previous_secrets: _previous, headers = {}, ...named } = secrets;
  const secrets_set = [...Object.keys(named), ...Object.keys(headers).map((name) => `headers.${name}`)];
  return { channel_id, type, enabled, config, secrets_set, ...(unreadable && { unreadable }) };
}
