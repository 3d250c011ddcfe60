import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import type { AuthorizeDeps } from '../connection/authorize.js';
import { findInstance } from '../connection/connection-rows.js';

/** How many instances handshakes look up at once: fewer than the platform role has connections, because loops need some too. */
const LOOKUPS_AT_ONCE = 3;
/** Handshakes of one tenant that wait for a look-up; further ones are refused with 503. */
const HANDSHAKES_WAITING_MAX = 10_000;

function tooManyHandshakes(): PlatformError {
  const headers = { 'retry-after': '5' };
  return new PlatformError('SERVICE_UNAVAILABLE', 'Too many agents connect at once. Connect again.', { headers });
}

/**
 * Looks instances up, a few at once and in turns of the tenants.
 * @throws PlatformError `SERVICE_UNAVAILABLE` when too many of the tenant wait, or while the database is away
 */
export function instanceLookup(db: Db): AuthorizeDeps['findInstance'] {
  const turns = new FairSemaphore({
    limit: LOOKUPS_AT_ONCE,
    perKey: LOOKUPS_AT_ONCE,
    waitingMax: HANDSHAKES_WAITING_MAX,
    refusal: tooManyHandshakes,
  });
  return (tenantId, instanceId) => turns.run(tenantId, () => db.system((tx) => findInstance(tx, tenantId, instanceId)));
}
