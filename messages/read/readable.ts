import { z } from 'zod';
import { A2aMessage } from '../../contracts/a2a/a2a.js';
import { Artifact, Part } from '../../contracts/a2a/parts.js';
import { AgentInputRequest, MessageUsage } from '../../contracts/api/messages.js';
import type { AskedRequest } from './rows.js';

const Content = z
  .object({
    parts: z.array(Part),
    turns: z.array(A2aMessage),
    artifacts: z.array(Artifact),
    status_message: A2aMessage.nullable(),
    usage: MessageUsage.nullable(),
  })
  .partial();

/** A list without the items that are not valid. */
const validItems = <Item extends z.ZodType>(Item: Item) =>
  z.preprocess(
    (list) => (Array.isArray(list) ? list.filter((item) => Item.safeParse(item).success) : []),
    z.array(Item),
  );
const ValidParts = validItems(Part);
const ValidMessage = z.looseObject({ parts: ValidParts }).pipe(A2aMessage);
const ValidArtifact = z.looseObject({ parts: ValidParts }).pipe(Artifact);

/** The valid part of each content column. */
const VALID_CONTENT = {
  parts: ValidParts,
  turns: validItems(ValidMessage),
  artifacts: validItems(ValidArtifact),
  status_message: ValidMessage.nullable().catch(null),
  usage: MessageUsage.nullable().catch(null),
};

const ValidForm = z.object({
  schema: AgentInputRequest.shape.schema.unwrap().nullable().catch(null),
  fields: AgentInputRequest.shape.fields.unwrap().nullable().catch(null),
  arguments: AgentInputRequest.shape.arguments.unwrap().nullable().catch(null),
});

/**
 * The row of a message, or of a dispatch with its message, with valid content only. An earlier release may have stored content that today's
 * schemas refuse: it is left out, so that one such row never breaks a page.
 */
export function readable<Row extends object>(row: Row): Row {
  if (Content.safeParse(row).success) return row;
  const columns = Object.entries(VALID_CONTENT).filter(([name]) => name in row);
  const content = columns.map(([name, valid]) => [name, valid.parse((row as Record<string, unknown>)[name])]);
  return { ...row, ...Object.fromEntries(content) };
}

/** As `readable`, for an input request. */
export function readableRequest<Row extends AskedRequest>(row: Row): Row {
  return { ...row, ...ValidForm.parse(row) };
}
