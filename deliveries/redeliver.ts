import type { DeliveryStatus } from '../contracts/api/deliveries.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { type Secrets, UnreadableValue } from '../runtime/secrets.js';
import type { ChannelClients } from './channels/clients.js';
import { type DeliveryIds, inputOf } from './delivery-store.js';
import { MAIL_TO } from './pending-deliveries.js';
import { enqueue } from './queue.js';
import { type Recipient, recipientOf, type StoredRecipient } from './recipient.js';

const FIND = `
  SELECT d.status, c.secrets AS channel_secrets, p.secrets AS config_secrets, ${MAIL_TO},
         CASE WHEN c.channel_id IS NOT NULL THEN jsonb_build_object('channel_id', c.channel_id, 'rule_id', c.rule_id, 'type', c.type,
           'enabled', c.enabled, 'config', c.config) END AS channel,
         CASE WHEN p.config_id IS NOT NULL THEN jsonb_build_object('config_id', p.config_id, 'url', p.url, 'schemes', p.schemes,
           'protocol_version', p.protocol_version) END AS config
    FROM deliveries d LEFT JOIN alert_channels c USING (tenant_id, channel_id)
    LEFT JOIN push_configs p ON p.tenant_id = d.tenant_id AND p.message_id = d.message_id AND p.config_id = d.config_id
   WHERE d.tenant_id = $1 AND d.delivery_id = $2`;
// Two emails of one event that look for another recipient do so one after the other.
const LOCK_CHANNEL = `
  SELECT 1 FROM alert_channels c WHERE c.tenant_id = $1
     AND c.channel_id = (SELECT d.channel_id FROM deliveries d WHERE d.tenant_id = $1 AND d.delivery_id = $2) FOR UPDATE`;
const REPEAT = `
  UPDATE deliveries d SET status = 'pending', ended_at = NULL, attempts_before = jsonb_array_length(attempts), url = $3, receiver = $4, mail_to = $5
   WHERE d.tenant_id = $1 AND d.delivery_id = $2 AND d.status <> 'pending'
  RETURNING tenant_id, delivery_id, session_id, event_type, event_id, rule_id, channel_id, message_id, config_id, attempts_before + 1 AS starts`;

export interface RedeliverDeps {
  db: Db;
  secrets: Pick<Secrets, 'decrypt'>;
  clients: ChannelClients;
}

/** @throws PlatformError CONFLICT where there is nobody to send to, or no address can be read */
function recipientNow({ secrets, clients }: RedeliverDeps, stored: StoredRecipient): Recipient {
  try {
    const recipient = recipientOf(secrets, clients, stored);
    if (recipient) return recipient;
  } catch (error) {
    if (!(error instanceof UnreadableValue)) throw error;
    throw new PlatformError('CONFLICT', 'The secrets of the channel cannot be read: set them anew.');
  }
  throw new PlatformError(
    'CONFLICT',
    'The channel, the recipient or the push configuration of the delivery was removed.',
  );
}

function stillSent(): PlatformError {
  return new PlatformError('CONFLICT', 'The delivery is still being sent.');
}

/**
 * Sends a delivery again under the same delivery_id, with new attempts, to where its channel or push configuration leads now: the same bytes,
 * but for a callback token, which goes to nobody but whom it was issued for (attempt-delivery.ts).
 * @throws PlatformError NOT_FOUND; CONFLICT while it is still being sent, and after its channel, recipient or configuration was removed
 */
export function redeliver(deps: RedeliverDeps, tenantId: string, deliveryId: string): Promise<DeliveryStatus> {
  return deps.db.tenant<DeliveryStatus>(tenantId, async (tx) => {
    type Found = StoredRecipient & { status: DeliveryStatus };
    await tx.query(LOCK_CHANNEL, [tenantId, deliveryId]);
    const [found] = await tx.query<Found>(FIND, [tenantId, deliveryId]);
    if (!found) throw new PlatformError('NOT_FOUND', 'There is no delivery of that delivery_id.');
    if (found.status === 'pending') throw stillSent();
    const { url, receiver, mail_to } = recipientNow(deps, found);
    const values = [tenantId, deliveryId, url, receiver, mail_to];
    const [repeated] = await tx.query<DeliveryIds & { starts: number }>(REPEAT, values);
    if (!repeated) throw stillSent(); // by another call of the same moment
    const { starts, ...ids } = repeated;
    await enqueue(tx, [{ input: inputOf(ids), receiver, starts }]);
    return 'pending';
  });
}
