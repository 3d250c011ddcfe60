import type { AgentTask, Question, TaskResolution } from '../../sdk/index.js';

/** Arguments of a tool. A model or a human wrote them, so each tool validates its own. */
export type Arguments = Record<string, unknown>;

/** A tool of the concierge, called by the rules or by the model. */
export interface ConciergeTool {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** The question to a human before the tool runs; a tool without one runs at once. */
  question?(args: Arguments): Question;
  /** @param data values of the form, for a tool that asks with one */
  run(args: Arguments, task: AgentTask, data: Arguments): Promise<string>;
}

/** An argument as text; empty when it is missing. */
export function textArgument(args: Arguments, name: string): string {
  const value = args[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** The answer when a human refused. */
export function refusalText({ comment }: TaskResolution): string {
  return `As you wish: I did nothing.${comment ? ` (You said: ${comment})` : ''}`;
}
