import { z } from 'zod';
import { A2aMessage } from '../../contracts/a2a/a2a.js';
import { Artifact, Part } from '../../contracts/a2a/parts.js';
import { AgentInputRequest, Usage } from '../../contracts/api/messages.js';
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

/** The valid part of each content column. */
const VALID_PARTS = {
  parts: (value: unknown) => validParts(value),
  turns: (value: unknown) => validItems(value, validMessage),
  artifacts: (value: unknown) => validItems(value, validArtifact),
  status_message: (value: unknown) => validMessage(value),
  usage: (value: unknown) => Usage.safeParse(value).data ?? null,
};

/**
 * The row of a message, or of a dispatch with its message, with valid content only. An earlier release may have stored content that today's
 * schemas refuse: it is left out, so that one such row never breaks a page.
 */
export function readable<Row extends object>(row: Row): Row {
  if (Content.safeParse(row).success) return row;
  const columns = Object.entries(VALID_PARTS).filter(([name]) => name in row);
  const content = columns.map(([name, read]) => [name, read((row as Record<string, unknown>)[name])]);
  return { ...row, ...Object.fromEntries(content) };
}

/** As `readable`, for an input request. */
export function readableRequest(row: InputRequestRow): InputRequestRow {
  if (Form.safeParse(row).success) return row;
  const { schema, fields, arguments: args } = Form.shape;
  return {
    ...row,
    schema: schema.safeParse(row.schema).data ?? null,
    fields: fields.safeParse(row.fields).data ?? null,
    arguments: args.safeParse(row.arguments).data ?? null,
  };
}

function validItems<Item>(list: unknown, read: (value: unknown) => Item | null): Item[] {
  return Array.isArray(list) ? list.map(read).filter((item) => item !== null) : [];
}

function validParts(list: unknown): Part[] {
  return validItems(list, (part) => Part.safeParse(part).data ?? null);
}

function validMessage(value: unknown): A2aMessage | null {
  return A2aMessage.safeParse(withValidParts(value)).data ?? null;
}

function validArtifact(value: unknown): Artifact | null {
  return Artifact.safeParse(withValidParts(value)).data ?? null;
}

function withValidParts(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return { ...value, parts: validParts((value as { parts?: unknown }).parts) };
}
