import type { FastifyReply, FastifyRequest } from 'fastify';
import { LIMITS } from '../contracts/limits.js';
import { PlatformError } from '../runtime/errors.js';
import { callerOf } from './plugins/authentication.js';

/** Bodies beyond the common limit that one process holds in memory, and of these those of one tenant. */
const BODIES_MAX = 8;
const OF_TENANT_MAX = 2;

/**
 * Bounds the large bodies that a process holds at once: a hook for routes that take them, which runs before the body is read. Requests
 * beyond the bound are refused with RATE_LIMITED. A body of unknown length counts as large.
 */
export function largeBodySlots() {
  const byTenant = new Map<string, number>();
  let total = 0;
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
    if (length <= LIMITS.bodyBytes) return;
    const { tenant_id } = callerOf(request);
    const ofTenant = byTenant.get(tenant_id) ?? 0;
    if (total >= BODIES_MAX || ofTenant >= OF_TENANT_MAX) {
      const message = 'Too many large requests are in flight. Send them one after the other.';
      throw new PlatformError('RATE_LIMITED', message, { headers: { 'Retry-After': '1' } });
    }
    total += 1;
    byTenant.set(tenant_id, ofTenant + 1);
    // Also when the caller hangs up.
    reply.raw.once('close', () => {
      total -= 1;
      const left = (byTenant.get(tenant_id) ?? 1) - 1;
      if (left > 0) byTenant.set(tenant_id, left);
      else byTenant.delete(tenant_id);
    });
  };
}
