import { groupsOfSession } from '../../db/events.js';
import type { Tx } from '../../db/pool.js';
import { deliveryWorkflows } from '../../messages/supervise/workflow-erasure.js';
import { countRows } from '../count-rows.js';
import { alertsAbout } from '../deliveries-about.js';
import type { EraserDeps, Portion } from '../eraser-deps.js';
import { addRemoved, type Erasure } from '../erasures.js';
import { areEventsRead } from '../event-readers.js';
import { countExternal, removeExternal } from '../external-removal.js';

/** Groups of events that one transaction erases. */
const GROUPS_AT_ONCE = 500;

const NEXT = `
  SELECT e.event_id FROM (SELECT group_id FROM event_groups x WHERE ${groupsOfSession('x', '$1', '$2')} LIMIT ${GROUPS_AT_ONCE}) g
   CROSS JOIN LATERAL (SELECT v.event_id FROM events v WHERE v.tenant_uuid = uuid_of($1) AND v.group_id = g.group_id) e`;

async function eraseRows(tx: Tx, erasure: Erasure, ids: string[]): Promise<void> {
  const { tenant_id, erasure_id } = erasure;
  const ofEvents = 'tenant_id = $1 AND event_id = ANY ($2)';
  const queued = `DELETE FROM delivery_queue WHERE tenant_id = $1 AND queue_id IN (SELECT delivery_id FROM deliveries WHERE ${ofEvents})`;
  const groups = 'tenant_id = uuid_of($1) AND group_id = ANY (ARRAY(SELECT group_of(id) FROM unnest($2) AS id))';
  await countExternal(tx, erasure_id);
  await addRemoved(tx, erasure_id, {
    delivery_queue: await countRows(tx, queued, [tenant_id, ids]),
    deliveries: await countRows(tx, `DELETE FROM deliveries WHERE ${ofEvents}`, [tenant_id, ids]),
    event_groups: await countRows(tx, `DELETE FROM event_groups WHERE ${groups}`, [tenant_id, ids]),
  });
}

/** Erases the next events of a session that belong to no message, with the deliveries about them, once they have been read. */
export async function eraseSessionEvents(deps: EraserDeps, erasure: Erasure, sessionId: string): Promise<Portion> {
  const { tenant_id } = erasure;
  const events = await deps.db.system((tx) => tx.query<{ event_id: string }>(NEXT, [tenant_id, sessionId]));
  const ids = events.map(({ event_id }) => event_id);
  if (ids.length === 0) return 'finished';
  if (!(await areEventsRead(deps, erasure, ids))) return 'waits';
  const workflows = await deps.workflows.find(deliveryWorkflows(await alertsAbout(deps.db, tenant_id, ids)));
  await removeExternal(deps, erasure, { workflows, keys: [] });
  await deps.db.system((tx) => eraseRows(tx, erasure, ids));
  return 'erased';
}
