import { z } from 'zod';

const Check = z.enum(['ok', 'down']);
export const HealthResponse = z.object({
  status: z.enum(['ok', 'degraded']),
  version: z.string(),
  checks: z.object({ database: Check, temporal: Check, mesh: Check, redis: Check.optional() }),
});
export type HealthResponse = z.infer<typeof HealthResponse>;
