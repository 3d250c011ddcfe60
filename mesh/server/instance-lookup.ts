import pLimit from 'p-limit';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AuthorizeDeps } from '../connection/authorize.js';
import { findInstance } from '../connection/connection-rows.js';

/** Instances that handshakes look up at once: fewer than the pool has connections, because the node's renewal needs one. */
const LOOKUPS_AT_ONCE = 3;
/** Handshakes that wait for a look-up; further ones are refused with 503. */
const HANDSHAKES_WAITING_MAX = 10_000;

/** Looks instances up, a few at once. @throws PlatformError `SERVICE_UNAVAILABLE` when too many wait, or while the database is away */
export function instanceLookup(db: Db): AuthorizeDeps['findInstance'] {
  const limit = pLimit(LOOKUPS_AT_ONCE);
  return async (tenantId, instanceId) => {
    if (limit.pendingCount >= HANDSHAKES_WAITING_MAX) {
      const headers = { 'retry-after': '5' };
      throw new PlatformError('SERVICE_UNAVAILABLE', 'Too many agents connect at once. Connect again.', { headers });
    }
    return limit(() => db.system((tx) => findInstance(tx, tenantId, instanceId)));
  };
}
