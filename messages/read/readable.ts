import { z } from 'zod';
import { A2aMessage } from '../../contracts/a2a.js';
import { AgentInputRequest, Usage } from '../../contracts/messages.js';
import { Artifact, Part } from '../../contracts/parts.js';
import type { InputRequestRow, MessageRow } from './rows.js';

/** The columns of a message that hold A2A content as JSON. */
type Content = Pick<MessageRow, 'parts' | 'turns' | 'artifacts' | 'status_message' | 'usage'>;

const Content = z.object({
  parts: z.array(Part),
  turns: z.array(A2aMessage),
  artifacts: z.array(Artifact),
  status_message: A2aMessage.nullable(),
  usage: Usage.nullable(),
});
const Form = z.object({
  schema: AgentInputRequest.shape.schema.unwrap().nullable(),
  fields: AgentInputRequest.shape.fields.unwrap().nullable(),
  arguments: AgentInputRequest.shape.arguments.unwrap().nullable(),
});

/**
 * A message's row as readers may rely on it. What is in the database was checked when it was written, but by the schemas of that day:
 * what of it does not fit those of today is left out, so that one bad row never keeps the others of a page from their reader.
 */
export function readable<Row extends Content>(row: Row): Row {
  if (Content.safeParse(row).success) return row;
  return {
    ...row,
    parts: partsIn(row.parts),
    turns: fitting(row.turns, messageIn),
    artifacts: fitting(row.artifacts, artifactIn),
    status_message: messageIn(row.status_message),
    usage: Usage.safeParse(row.usage).data ?? null,
  };
}

/** As `readable`, of a question to a human. */
export function readableRequest(row: InputRequestRow): InputRequestRow {
  if (Form.safeParse(row).success) return row;
  const { schema, fields, arguments: given } = Form.shape;
  return {
    ...row,
    schema: schema.safeParse(row.schema).data ?? null,
    fields: fields.safeParse(row.fields).data ?? null,
    arguments: given.safeParse(row.arguments).data ?? null,
  };
}

function fitting<Item>(list: unknown, read: (value: unknown) => Item | null): Item[] {
  return Array.isArray(list) ? list.map(read).filter((item) => item !== null) : [];
}

function partsIn(list: unknown): Part[] {
  return fitting(list, (part) => Part.safeParse(part).data ?? null);
}

function messageIn(value: unknown): A2aMessage | null {
  return A2aMessage.safeParse(withParts(value)).data ?? null;
}

function artifactIn(value: unknown): Artifact | null {
  return Artifact.safeParse(withParts(value)).data ?? null;
}

function withParts(value: unknown): unknown {
  return typeof value === 'object' && value !== null
    ? { ...value, parts: partsIn((value as { parts?: unknown }).parts) }
    : value;
}
