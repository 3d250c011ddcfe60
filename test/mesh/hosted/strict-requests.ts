import { z } from 'zod';

/** What official A2A servers take: these members and no others, on every level down to the parts. */

const Metadata = z.record(z.string(), z.unknown());
const Id = z.string().min(1);

const Part = z.union([
  z.strictObject({ kind: z.literal('text'), text: z.string(), metadata: Metadata.optional() }),
  z.strictObject({ kind: z.literal('data'), data: Metadata, metadata: Metadata.optional() }),
  z.strictObject({ kind: z.literal('file'), file: Metadata, metadata: Metadata.optional() }),
]);
const messageMembers = {
  messageId: Id,
  contextId: Id.optional(),
  taskId: Id.optional(),
  referenceTaskIds: z.array(Id).optional(),
  extensions: z.array(z.string()).optional(),
  metadata: Metadata.optional(),
};
const Message = z.strictObject({
  ...messageMembers,
  kind: z.literal('message'),
  role: z.enum(['user', 'agent']),
  parts: z.array(Part).min(1),
});
const Configuration = z.strictObject({
  acceptedOutputModes: z.array(z.string()).optional(),
  blocking: z.boolean().optional(),
  historyLength: z.int().optional(),
});
const Send = z.strictObject({
  message: Message,
  configuration: Configuration.optional(),
  metadata: Metadata.optional(),
});
const Get = z.strictObject({ id: Id, historyLength: z.int().optional() });
const Cancel = z.strictObject({ id: Id, metadata: Metadata.optional() });

const Part1 = z
  .strictObject({
    text: z.string().optional(),
    raw: z.string().optional(),
    url: z.string().optional(),
    data: z.unknown().optional(),
    filename: z.string().optional(),
    mediaType: z.string().optional(),
    metadata: Metadata.optional(),
  })
  .refine((part) => ['text', 'raw', 'url', 'data'].filter((member) => member in part).length === 1);
const Send1 = z.strictObject({
  message: z.strictObject({
    ...messageMembers,
    role: z.enum(['ROLE_USER', 'ROLE_AGENT']),
    parts: z.array(Part1).min(1),
  }),
  configuration: z
    .strictObject({
      acceptedOutputModes: z.array(z.string()).optional(),
      returnImmediately: z.boolean().optional(),
      historyLength: z.int().optional(),
    })
    .optional(),
  metadata: Metadata.optional(),
});

const PARAMS: Record<string, z.ZodType | undefined> = {
  'message/send': Send,
  'message/stream': Send,
  'tasks/get': Get,
  'tasks/cancel': Cancel,
  SendMessage: Send1,
  SendStreamingMessage: Send1,
  GetTask: Get,
  CancelTask: Cancel,
};

const Envelope = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.int()]),
  method: z.string(),
  params: z.unknown(),
});

/** The error of an official server for a request that it does not take; undefined for one that it takes. */
export function refusalOf(body: unknown): { code: number; message: string; data: object } | undefined {
  const envelope = Envelope.safeParse(body);
  if (!envelope.success) {
    const data = { parseError: z.prettifyError(envelope.error) };
    return { code: -32600, message: 'Request payload validation error', data };
  }
  const params = PARAMS[envelope.data.method]?.safeParse(envelope.data.params);
  if (!params?.error) return undefined;
  return { code: -32602, message: 'Invalid parameters', data: { parseError: z.prettifyError(params.error) } };
}
