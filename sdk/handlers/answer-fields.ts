import { z } from 'zod';
import { Artifact, Part } from '../../contracts/a2a/parts.js';
import { AgentInputRequest, Usage } from '../../contracts/api/messages.js';
import type { Field } from './sendable.js';

/** The forms of a part, for error messages. */
export const PART_FORMS =
  "a part is { kind: 'text', text }, { kind: 'data', data: {…} } or { kind: 'file', file: {…} }";

/** The depth of parts in the final result. Chunks use it too, because the result repeats what was streamed. */
export const PARTS: Field = { name: 'parts', schema: z.array(Part), depth: 6, remedy: PART_FORMS };

export const ARTIFACTS: Field = {
  name: 'artifacts',
  schema: z.array(
    Artifact.extend({ artifactId: Artifact.shape.artifactId.optional(), extensions: z.array(z.string()).optional() }),
  ),
  depth: 4,
  remedy: `an artifact is { parts, artifactId?, name?, description?, metadata?, extensions? }, and ${PART_FORMS}`,
};

export const QUESTION: Field = {
  name: 'question',
  schema: AgentInputRequest,
  depth: 4,
  remedy:
    "a question is { kind: 'confirmation' | 'form' | 'approval', title, prompt, schema?, fields?, tool?, arguments? }",
};

export const USAGE: Field = {
  name: 'usage',
  schema: Usage,
  depth: 3,
  remedy: 'usage is { inputTokens, outputTokens, model?, costUsd? } with whole numbers of tokens',
};

export const STATUS: Field = { name: 'status', schema: z.string(), depth: 3, remedy: 'a status is text' };
