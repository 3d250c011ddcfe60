import { z } from 'zod';
import { JsonObject } from '../primitives.js';

const metadata = JsonObject.optional();

/** A2A 0.3 parts: text, file and data. Unknown members are ignored. */
const TextPart = z.object({ kind: z.literal('text'), text: z.string(), metadata });
const FilePart = z.object({
  kind: z.literal('file'),
  file: z
    .object({
      bytes: z.string().optional(),
      uri: z.string().optional(),
      name: z.string().optional(),
      mimeType: z.string().optional(),
    })
    .refine((file) => (file.bytes === undefined) !== (file.uri === undefined), 'needs exactly one of bytes and uri'),
  metadata,
});
const DataPart = z.object({ kind: z.literal('data'), data: JsonObject, metadata });
export const Part = z.discriminatedUnion('kind', [TextPart, FilePart, DataPart]);
export type Part = z.infer<typeof Part>;

export const Artifact = z.object({
  artifactId: z.string().min(1),
  name: z.string().optional(),
  description: z.string().optional(),
  parts: z.array(Part),
  metadata,
});
export type Artifact = z.infer<typeof Artifact>;
