import { z } from 'zod';

/** `ready=full`: anything that is down counts as not ready, Temporal and Redis too. */
export const HealthQuery = z.object({ ready: z.literal('full').optional().catch(undefined) });

const Check = z.enum(['ok', 'down']);
export const HealthResponse = z.object({
  status: z.enum(['ok', 'degraded']),
  version: z.string(),
  checks: z.object({ database: Check, temporal: Check, mesh: Check, redis: Check.optional() }),
});
export type HealthResponse = z.infer<typeof HealthResponse>;
