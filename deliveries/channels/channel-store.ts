import type { ChannelType } from '../../contracts/api/alerts.js';
import type { Tx } from '../../db/pool.js';
import { holdSecretKey } from '../../db/secret-key.js';
import type { SigningSecrets } from '../../http/webhook-signatures.js';
import { SEALED } from '../../runtime/sealed-columns.js';
import { type Secrets, UnreadableValue } from '../../runtime/secrets.js';
import { DEFAULT_ATTEMPTS } from '../attempts.js';

/** The part of a channel's config that may be shown. */
export interface ChannelConfig {
  url?: string;
  channel_id?: string;
  recipients?: string[];
  max_attempts?: 3 | 4;
}

/** The part of a channel's config that never leaves the platform. */
export interface ChannelSecrets extends SigningSecrets {
  /** Of a webhook. */
  headers?: Record<string, string>;
  /** Of Slack. */
  webhook_url?: string;
  bot_token?: string;
  signing_secret?: string;
}

/** A channel of a rule with its secrets: a row of `alert_channels`. */
export interface Channel {
  channel_id: string;
  rule_id: string;
  type: ChannelType;
  enabled: boolean;
  config: ChannelConfig;
  secrets: ChannelSecrets;
  /** No present key opens the secrets: they are missing here. */
  unreadable?: true;
}

/** A row of `alert_channels`, sealed. */
export type ChannelRow = Omit<Channel, 'secrets' | 'unreadable'> & { secrets: Buffer | null };

const { purpose: PURPOSE } = SEALED.channelSecrets;

/** @throws UnreadableValue when the data was altered or encrypted with another key */
export function unsealChannel(secrets: Pick<Secrets, 'decrypt'>, row: ChannelRow): Channel {
  const { channel_id, rule_id, type, enabled, config } = row;
  const plain = row.secrets === null ? {} : JSON.parse(secrets.decrypt(row.secrets, PURPOSE).toString());
  return { channel_id, rule_id, type, enabled, config, secrets: plain as ChannelSecrets };
}

/** As `unsealChannel`, without the secrets where no present key opens them. */
export function readableChannel(secrets: Pick<Secrets, 'decrypt'>, row: ChannelRow): Channel {
  try {
    return unsealChannel(secrets, row);
  } catch (error) {
    if (!(error instanceof UnreadableValue)) throw error;
    return { ...row, secrets: {}, unreadable: true };
  }
}

/** Attempts that a delivery to the channel has. */
export function maxAttemptsOf({ config }: Pick<Channel, 'config'>): number {
  return config.max_attempts ?? DEFAULT_ATTEMPTS;
}

const READ = `
  SELECT channel_id, rule_id, type, enabled, config, secrets FROM alert_channels
   WHERE tenant_id = $1 AND rule_id = ANY($2) ORDER BY rule_id, place`;

/** The channels of rules, in the order of each rule. */
export function readChannels(tx: Tx, tenantId: string, ruleIds: string[]): Promise<ChannelRow[]> {
  return tx.query<ChannelRow>(READ, [tenantId, ruleIds]);
}

/** Replaces the channels of a rule. */
export async function writeChannels(
  tx: Tx,
  secrets: Pick<Secrets, 'encrypt' | 'activate'>,
  of: { tenant_id: string; rule_id: string },
  channels: Omit<Channel, 'rule_id'>[],
): Promise<void> {
  await holdSecretKey(tx, secrets);
  await tx.query('DELETE FROM alert_channels WHERE tenant_id = $1 AND rule_id = $2', [of.tenant_id, of.rule_id]);
  for (const [place, channel] of channels.entries()) {
    const { channel_id, type, enabled, config } = channel;
    const hasSecrets = Object.keys(channel.secrets).length > 0;
    const sealed = hasSecrets ? secrets.encrypt(JSON.stringify(channel.secrets), PURPOSE) : null;
    await tx.query(
      `INSERT INTO alert_channels (tenant_id, rule_id, channel_id, place, type, enabled, config, secrets)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [of.tenant_id, of.rule_id, channel_id, place, type, enabled, JSON.stringify(config), sealed],
    );
  }
}
