import type { Delivery, DeliveryStatus, GetDeliveriesRequest } from '../contracts/api/deliveries.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/page.js';
import type { Db } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import { inQueue } from './alert-deliveries.js';
import { type ChannelRow, unsealChannel } from './channels/channel-store.js';
import type { ChannelClients } from './channels/clients.js';
import { destinationOf } from './channels/send.js';
import { enqueue } from './queue.js';

const LISTED = `deliveries WHERE tenant_id = $1 AND ($2::text IS NULL OR rule_id = $2) AND ($3::text IS NULL OR event_type = $3)
    AND ($4::boolean IS NULL OR ($4 AND status = 'delivered') OR (NOT $4 AND status IN ('failed', 'dropped')))`;
const SELECT = `
  SELECT delivery_id, rule_id, event_type, url, status, attempts FROM deliveries
   WHERE tenant_id = $1 AND delivery_id = ANY ($2) ORDER BY delivery_id DESC`;

/** A page of a tenant's deliveries, newest first, without bodies. */
export function listDeliveries(
  db: Db,
  tenantId: string,
  { rule_id, event_type, success, ...page }: GetDeliveriesRequest,
): Promise<Page<Delivery>> {
  const values: KeyList['values'] = [tenantId, rule_id ?? null, event_type ?? null, success ?? null];
  const list: KeyList = { key: 'delivery_id', from: LISTED, orderBy: 'delivery_id DESC', values };
  return readPage(db, list, page, (tx, ids) => queryJson<Delivery>(tx, SELECT, [tenantId, ids]));
}

const REPEAT = `
  UPDATE deliveries d SET status = 'pending', ended_at = NULL, attempts_before = jsonb_array_length(attempts), url = $3, receiver = $4
   WHERE d.tenant_id = $1 AND d.delivery_id = $2 AND d.status <> 'pending'
  RETURNING tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, receiver, attempts_before + 1 AS starts`;

interface Repeated extends Record<string, unknown> {
  tenant_id: string;
  delivery_id: string;
  event_id: string;
  rule_id: string;
  channel_id: string;
  event_type: string;
  session_id: string;
  receiver: string;
  starts: number;
}

const FIND = `
  SELECT d.status, CASE WHEN c.channel_id IS NOT NULL THEN jsonb_build_object('channel_id', c.channel_id, 'rule_id', c.rule_id,
           'type', c.type, 'enabled', c.enabled, 'config', c.config) END AS channel, c.secrets
    FROM deliveries d LEFT JOIN alert_channels c USING (tenant_id, channel_id) WHERE d.tenant_id = $1 AND d.delivery_id = $2`;

interface Found extends Record<string, unknown> {
  status: DeliveryStatus;
  /** Null when it was removed. */
  channel: Omit<ChannelRow, 'secrets'> | null;
  secrets: Buffer | null;
}

export interface RedeliverDeps {
  db: Db;
  secrets: Pick<Secrets, 'decrypt'>;
  clients: Pick<ChannelClients, 'slackApiUrl'>;
}

/** Where the channel of a delivery leads to now: that receiver's slots and breaker count. Only addresses of Slack are secret. */
function destinationNow(
  { secrets, clients }: RedeliverDeps,
  channel: Omit<ChannelRow, 'secrets'>,
  sealed: Buffer | null,
) {
  const isSecret = channel.type === 'slack';
  const unsealed = isSecret ? unsealChannel(secrets, { ...channel, secrets: sealed }) : { ...channel, secrets: {} };
  return destinationOf(unsealed, clients.slackApiUrl);
}

/**
 * Sends a delivery again: the same bytes under the same delivery_id, with new attempts, to where its channel leads now.
 * @throws PlatformError NOT_FOUND; CONFLICT while it is still being sent, and after its channel was removed
 */
export async function redeliver(deps: RedeliverDeps, tenantId: string, deliveryId: string): Promise<DeliveryStatus> {
  return deps.db.tenant<DeliveryStatus>(tenantId, async (tx) => {
    const [found] = await tx.query<Found>(FIND, [tenantId, deliveryId]);
    if (!found) throw new PlatformError('NOT_FOUND', 'There is no delivery of that delivery_id.');
    if (found.status === 'pending') throw stillSent();
    if (!found.channel) throw new PlatformError('CONFLICT', 'The channel of the delivery was removed.');
    const { url, receiver } = destinationNow(deps, found.channel, found.secrets);
    const [repeated] = await tx.query<Repeated>(REPEAT, [tenantId, deliveryId, url, receiver]);
    if (!repeated) throw stillSent(); // by another call of the same moment
    await enqueue(tx, [inQueue(repeated)]);
    return 'pending';
  });
}

function stillSent(): PlatformError {
  return new PlatformError('CONFLICT', 'The delivery is still being sent.');
}
