import { z } from 'zod';
import type { Artifact } from '../../contracts/a2a/parts.js';

/**
 * An artifact that is still being streamed. No schema of A2A fits it, because its text may end inside a surrogate pair.
 */
const GrowingArtifact = z.custom<Artifact>(
  (value) => typeof value === 'object' && value !== null && 'artifactId' in value && 'parts' in value,
);

const ChunkProgress = z.object({
  /** Chunks taken so far, which is the number of the next. */
  count: z.int().min(0),
  bytes: z.int().min(0),
  /** When the first chunk came, in milliseconds since 1970. */
  first_at_ms: z.number().optional(),
  artifacts: z.array(z.object({ artifact: GrowingArtifact, bytes: z.int().min(0) })),
});
export type ChunkProgress = z.infer<typeof ChunkProgress>;

/** What a node knows about a running dispatch that is not on the record. Another node needs it to continue. */
export const DispatchProgress = z.object({
  /** How often it was sent to the agent. */
  sends: z.int().min(0),
  announced_chunks: z.int().min(0),
  /** Null before the first chunk. */
  chunks: ChunkProgress.nullable(),
});
export type DispatchProgress = z.infer<typeof DispatchProgress>;
