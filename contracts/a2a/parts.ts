import { z } from 'zod';

/** A2A 0.3 parts: text, file and data. Unknown members are ignored. */
const TextPart = z.object({
  kind: z.literal('text'),
  text: z.string(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
const FilePart = z.object({
  kind: z.literal('file'),
  file: z
    .object({
      bytes: z.string().optional(),
      uri: z.string().optional(),
      name: z.string().optional(),
      mimeType: z.string().optional(),
    })
    .refine((file) => (file.bytes === undefined) !== (file.uri === undefined), {
      message: 'needs exactly one of bytes and uri',
    }),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
const DataPart = z.object({
  kind: z.literal('data'),
  data: z.record(z.string(), z.unknown()),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
export const Part = z.discriminatedUnion('kind', [TextPart, FilePart, DataPart]);
export type Part = z.infer<typeof Part>;

export const Artifact = z.object({
  artifactId: z.string().min(1),
  name: z.string().optional(),
  description: z.string().optional(),
  parts: z.array(Part),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
export type Artifact = z.infer<typeof Artifact>;

/** The text of all text parts, joined by line feeds. */
export function textOf(parts: readonly Part[]): string {
  return parts
    .filter((part) => part.kind === 'text')
    .map((part) => part.text)
    .join('\n');
}
