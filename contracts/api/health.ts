import { z } from 'zod';

/** `ready=full`: the platform is ready only if every check is ok, Temporal and Redis included. */
export const HealthQuery = z.object({ ready: z.literal('full').optional().catch(undefined) });

const Check = z.enum(['ok', 'down']);
export const HealthResponse = z.object({
  status: z.enum(['ok', 'degraded']),
  version: z.string(),
  checks: z.object({ database: Check, temporal: Check, mesh: Check, redis: Check.optional() }),
});
export type HealthResponse = z.infer<typeof HealthResponse>;
