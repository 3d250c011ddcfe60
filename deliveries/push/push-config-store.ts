import type { A2aVersion } from '../../contracts/a2a/a2a.js';
import type { MessageOwners } from '../../contracts/permissions.js';
import { ownersOf } from '../../db/ownership.js';
import type { Tx } from '../../db/pool.js';
import { holdSecretKey } from '../../db/secret-key.js';
import type { MessageRef } from '../../messages/core.js';
import { SEALED } from '../../runtime/sealed-columns.js';
import type { Secrets } from '../../runtime/secrets.js';

/** The columns of a row of `push_configs`. */
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
 * Locks a message to change its configs: its state cannot change before the transaction ends.
 * @returns the owners of the message; null when the tenant has no such message
 */
export async function lockForPush(tx: Tx, { tenant_id, message_id }: MessageRef): Promise<MessageOwners | null> {
  const lock = 'SELECT 1 FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR UPDATE';
  await tx.query(lock, [tenant_id, message_id]);
  return ownersOf(tx, tenant_id, message_id);
}

/** Stores a config; replaces one of the same id. The caller holds the lock of the message. */
export async function putPushConfig(tx: Tx, of: MessageRef, config: PushConfigRow): Promise<void> {
  const { config_id, url, schemes, secrets, protocol_version } = config;
  await tx.query(
    `WITH marked AS (UPDATE messages SET notifies = true WHERE tenant_id = $1 AND message_id = $2 AND NOT notifies)
     INSERT INTO push_configs (tenant_id, message_id, ${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (tenant_id, message_id, config_id) DO UPDATE SET url = excluded.url, schemes = excluded.schemes,
         secrets = excluded.secrets, protocol_version = excluded.protocol_version`,
    [of.tenant_id, of.message_id, config_id, url, schemes, secrets, protocol_version],
  );
}

/** Adds the change to a message's first state. A trigger adds the later ones. */
export async function addFirstChange(tx: Tx, of: MessageRef, configId: string, state: string): Promise<void> {
  const insert = 'INSERT INTO push_changes (tenant_id, message_id, config_id, state) VALUES ($1, $2, $3, $4)';
  await tx.query(insert, [of.tenant_id, of.message_id, configId, state]);
}

/** Lists the configs of a message, the oldest first; null when the tenant has no such message. */
export async function pushConfigsOf(tx: Tx, of: MessageRef): Promise<PushConfigRow[] | null> {
  const rows = await tx.query<PushConfigRow & { config_id: string | null }>(
    `SELECT ${COLUMNS} FROM messages m LEFT JOIN push_configs c USING (tenant_id, message_id)
      WHERE m.tenant_id = $1 AND m.message_id = $2 ORDER BY c.created_at, c.config_id`,
    [of.tenant_id, of.message_id],
  );
  return rows.length === 0 ? null : rows.filter(({ config_id }) => config_id !== null);
}

/** Removes a config if it exists, with the changes of which it was to be notified. */
export async function removePushConfig(tx: Tx, of: MessageRef, configId: string): Promise<void> {
  for (const table of ['push_configs', 'push_changes']) {
    const remove = `DELETE FROM ${table} WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3`;
    await tx.query(remove, [of.tenant_id, of.message_id, configId]);
  }
}

/** The secrets by which a receiver recognizes the platform. */
export interface PushSecrets {
  token?: string | undefined;
  credentials?: string | undefined;
}

const { purpose: PURPOSE } = SEALED.pushSecrets;

/** Encrypts the secrets, in the transaction that stores them; null when there are none. */
export async function sealPushSecrets(
  tx: Tx,
  secrets: Pick<Secrets, 'encrypt' | 'activate'>,
  plain: PushSecrets,
): Promise<Buffer | null> {
  if (!plain.token && !plain.credentials) return null;
  await holdSecretKey(tx, secrets);
  return secrets.encrypt(JSON.stringify(plain), PURPOSE);
}

/** @throws UnreadableValue when the data was altered or encrypted with another key */
export function unsealPushSecrets(secrets: Pick<Secrets, 'decrypt'>, sealed: Buffer | null): PushSecrets {
  return sealed === null ? {} : (JSON.parse(secrets.decrypt(sealed, PURPOSE).toString()) as PushSecrets);
}
