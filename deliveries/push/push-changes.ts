import type { MessageState } from '../../contracts/api/messages.js';
import type { Db, Tx } from '../../db/pool.js';
import { newId, traceparentOf, uuidOf } from '../../runtime/ids.js';
import { DEFAULT_ATTEMPTS, receiverOf } from '../attempts.js';
import { type NewPushDelivery, writeDeliveries } from '../delivery-store.js';

/** Changes of one tenant, and tenants, that one transaction takes: a tenant with many changes delays the others by its share. */
const CHANGES_OF_TENANT = 32;
const TENANTS = 8;

const TYPE_PREFIX = 'task.';

/** The `event_type` of a push notification. */
const typeOf = (state: string) => `${TYPE_PREFIX}${state}`;

/** The state that a push notification of this `event_type` is about. */
export function stateOfType(eventType: string): MessageState {
  return eventType.slice(TYPE_PREFIX.length) as MessageState;
}

/** Another process takes them at this moment, or nothing is there. */
const LOOK = `SELECT EXISTS (SELECT 1 FROM push_changes) AND pg_try_advisory_xact_lock(hashtextextended('push_changes', 0)) AS found`;
/** Tenants in turns, each with its oldest changes. */
const TAKE = `
  WITH RECURSIVE tenants AS (
    (SELECT tenant_id, 1 AS nth FROM push_changes WHERE tenant_id > $1 ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT c.tenant_id FROM push_changes c WHERE c.tenant_id > t.tenant_id ORDER BY c.tenant_id LIMIT 1), t.nth + 1
      FROM tenants t WHERE t.tenant_id IS NOT NULL AND t.nth < ${TENANTS}),
  taken AS (
    SELECT c.* FROM tenants t CROSS JOIN LATERAL (
      SELECT tenant_id, sequence FROM push_changes WHERE tenant_id = t.tenant_id ORDER BY sequence LIMIT ${CHANGES_OF_TENANT}) c),
  gone AS (
    DELETE FROM push_changes c USING taken WHERE c.tenant_id = taken.tenant_id AND c.sequence = taken.sequence RETURNING c.*)
  SELECT g.tenant_id, g.sequence::text AS sequence, g.message_id, g.config_id, g.state, g.changed_at::text AS changed_at, c.url, m.session_id,
         trace_of(m.trace_id, m.message_id) AS trace_id, m.propagation ->> 'sampled' IS DISTINCT FROM 'false' AS sampled
    FROM gone g LEFT JOIN push_configs c USING (tenant_id, message_id, config_id) LEFT JOIN messages m USING (tenant_id, message_id)
   ORDER BY g.tenant_id, g.sequence`;

interface Change {
  tenant_id: string;
  sequence: string;
  message_id: string;
  config_id: string;
  state: string;
  changed_at: string;
  /** Null where the config was removed, and where the message is gone. */
  url: string | null;
  session_id: string | null;
  trace_id: string | null;
  sampled: boolean;
}

function deliveryOf({ url, session_id, trace_id, sampled, state, ...change }: Change): NewPushDelivery[] {
  if (url === null || session_id === null) return []; // nobody is to be notified any more
  return [
    {
      ...change,
      session_id,
      delivery_id: newId('dlv'),
      event_type: typeOf(state),
      url,
      receiver: receiverOf(url),
      max_attempts: DEFAULT_ATTEMPTS,
      ...(trace_id !== null && { traceparent: traceparentOf(trace_id, uuidOf(change.message_id), sampled) }),
    },
  ];
}

/** Makes deliveries of the changes of state that push-notification configs are to be notified of. One process at a time takes them. */
export class PushChanges {
  /** Of the tenant whose turn was last. */
  #after = '';

  constructor(private readonly db: Db) {}

  /** Takes the changes of the next tenants. @returns whether more may be there at once */
  relay(): Promise<boolean> {
    return this.db.system(async (tx) => {
      const [look] = await tx.query<{ found: boolean }>(LOOK, [], 'look_for_push_changes');
      if (!look?.found) return false;
      const changes = await this.#take(tx);
      await writeDeliveries(tx, changes.flatMap(deliveryOf));
      return changes.length > 0;
    });
  }

  async #take(tx: Tx): Promise<Change[]> {
    const changes = await tx.query<Change>(TAKE, [this.#after], 'take_push_changes');
    const before = this.#after;
    this.#after = changes.at(-1)?.tenant_id ?? '';
    // At the end of the tenants the first ones have their turn.
    return changes.length > 0 || before === '' ? changes : tx.query<Change>(TAKE, [''], 'take_push_changes');
  }
}
