import { z } from 'zod';
import { ok, Timestamp } from '../primitives.js';

/** `ready=full`: the platform is ready only if every check is ok, Temporal and Redis included. */
export const HealthQuery = z.object({ ready: z.literal('full').optional().catch(undefined) });

const Check = z.enum(['ok', 'down']);
export const HealthResponse = z.object({
  /** `stopping`: the process got its signal, and balancers are to send nothing more to it. */
  status: z.enum(['ok', 'degraded', 'stopping']),
  version: z.string(),
  checks: z.object({ database: Check, temporal: Check, mesh: Check, redis: Check.optional() }),
});
/** The health of the platform for its operators. */
export const PlatformHealth = ok({
  ...HealthResponse.shape,
  /** The processes with the mesh role that are on the record. */
  nodes: z.array(
    z.object({
      mesh_id: z.string(),
      started_at: Timestamp,
      renewed_at: Timestamp,
      draining: z.boolean(),
      agents: z.int(),
    }),
  ),
});
export type HealthResponse = z.infer<typeof HealthResponse>;

/**
 * The HTTP status of the answer. 200 without Temporal or Redis: the nodes still answer short messages and accept the others, so they stay in
 * the load balancer.
 */
export function healthStatus({ status, checks }: HealthResponse, { ready }: z.infer<typeof HealthQuery>): 200 | 503 {
  if (status === 'stopping' || checks.database === 'down') return 503;
  return ready === 'full' && status !== 'ok' ? 503 : 200;
}
