import { checked, type InputSchema, type SchemaOutput } from '../schema/schema.js';
import type { AgentTask } from './agent-task.js';

/** The input of a message does not fit its schema. Thrown in a handler it fails the message with `INVALID_DISPATCH`. */
export class InvalidInputError extends Error {
  readonly code = 'INVALID_DISPATCH';

  constructor(message: string) {
    super(message);
    this.name = 'InvalidInputError';
  }
}

/**
 * The input of a message: the caller's `args`, or else the first data part, or else `{}`.
 * @throws InvalidInputError when it does not fit the schema
 */
export async function inputOf<Schema extends InputSchema>(
  { args, parts }: Pick<AgentTask, 'args' | 'parts'>,
  schema: Schema,
): Promise<SchemaOutput<Schema>> {
  const given = args ?? parts.find((part) => part.kind === 'data')?.data ?? {};
  const { value, problem } = await checked(schema, given);
  if (problem !== null) throw new InvalidInputError(problem);
  return value as SchemaOutput<Schema>;
}
