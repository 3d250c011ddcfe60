import type { A2aVersion } from '../contracts/a2a.js';
import type { MessageOwners } from '../contracts/permissions.js';
import type { Tx } from '../db/pool.js';

/** A message, named. */
export interface OfMessage {
  tenant_id: string;
  message_id: string;
}

/** What a row of `push_configs` says. */
export interface PushConfigRow {
  config_id: string;
  url: string;
  schemes: string[];
  /** `{token?, credentials?}`, encrypted. */
  secrets: Buffer | null;
  protocol_version: A2aVersion;
}

const COLUMNS = 'config_id, url, schemes, secrets, protocol_version';

/**
 * Locks a message for a change of its configs, which no change of its state can then pass.
 * @returns whose it is; null when the tenant has no such message
 */
export async function lockForPush(tx: Tx, of: OfMessage): Promise<MessageOwners | null> {
  await tx.query('SELECT 1 FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR UPDATE', [
    of.tenant_id,
    of.message_id,
  ]);
  const [row] = await tx.query<MessageOwners & Record<string, unknown>>(
    'SELECT agent_type, sender_agent_type FROM messages WHERE tenant_id = $1 AND message_id = $2',
    [of.tenant_id, of.message_id],
  );
  return row ?? null;
}

/** Writes a config; one of the same id is replaced. The caller holds the message's lock. */
export async function putPushConfig(tx: Tx, of: OfMessage, config: PushConfigRow): Promise<void> {
  await tx.query(
    `WITH told AS (UPDATE messages SET notifies = true WHERE tenant_id = $1 AND message_id = $2 AND NOT notifies)
     INSERT INTO push_configs (tenant_id, message_id, ${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (tenant_id, message_id, config_id) DO UPDATE SET url = excluded.url, schemes = excluded.schemes,
         secrets = excluded.secrets, protocol_version = excluded.protocol_version`,
    [
      of.tenant_id,
      of.message_id,
      config.config_id,
      config.url,
      config.schemes,
      config.secrets,
      config.protocol_version,
    ],
  );
}

/** Notes that the state which a message was written with is to be told: later ones note themselves. */
export async function noteFirstState(tx: Tx, of: OfMessage, configId: string, state: string): Promise<void> {
  await tx.query('INSERT INTO push_deliveries (tenant_id, message_id, config_id, state) VALUES ($1, $2, $3, $4)', [
    of.tenant_id,
    of.message_id,
    configId,
    state,
  ]);
}

/** The configs of a message, the oldest first; null when the tenant has no such message. */
export async function pushConfigsOf(tx: Tx, of: OfMessage): Promise<PushConfigRow[] | null> {
  const rows = await tx.query<PushConfigRow & { config_id: string | null } & Record<string, unknown>>(
    `SELECT ${COLUMNS} FROM messages m LEFT JOIN push_configs c USING (tenant_id, message_id)
      WHERE m.tenant_id = $1 AND m.message_id = $2 ORDER BY c.created_at, c.config_id`,
    [of.tenant_id, of.message_id],
  );
  return rows.length === 0 ? null : rows.filter(({ config_id }) => config_id !== null);
}

/** Removes a config, if it is there. */
export async function removePushConfig(tx: Tx, of: OfMessage, configId: string): Promise<void> {
  await tx.query('DELETE FROM push_configs WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3', [
    of.tenant_id,
    of.message_id,
    configId,
  ]);
}
