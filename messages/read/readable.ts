import { z } from 'zod';
import { A2aMessage } from '../../contracts/a2a.js';
import { AgentInputRequest, Usage } from '../../contracts/messages.js';
import { Artifact, Part } from '../../contracts/parts.js';
import type { InputRequestRow } from './rows.js';

const Content = z
  .object({
    parts: z.array(Part),
    turns: z.array(A2aMessage),
    artifacts: z.array(Artifact),
    status_message: A2aMessage.nullable(),
    usage: Usage.nullable(),
  })
  .partial();

const Form = z.object({
  schema: AgentInputRequest.shape.schema.unwrap().nullable(),
  fields: AgentInputRequest.shape.fields.unwrap().nullable(),
  arguments: AgentInputRequest.shape.arguments.unwrap().nullable(),
});

/** What of each content column still fits. */
const FITTING = {
  parts: (value: unknown) => partsIn(value),
  turns: (value: unknown) => fitting(value, messageIn),
  artifacts: (value: unknown) => fitting(value, artifactIn),
  status_message: (value: unknown) => messageIn(value),
  usage: (value: unknown) => Usage.safeParse(value).data ?? null,
};

/**
 * The row of a message, or of a dispatch with its message, as readers may rely on it. Content was checked by the schemas of the day on
 * which it was written: what does not fit today's is left out, so that one bad row never breaks a page.
 */
export function readable<Row extends object>(row: Row): Row {
  if (Content.safeParse(row).success) return row;
  const columns = Object.entries(FITTING).filter(([name]) => name in row);
  const content = columns.map(([name, read]) => [name, read((row as Record<string, unknown>)[name])]);
  return { ...row, ...Object.fromEntries(content) };
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
