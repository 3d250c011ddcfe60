import type { AgentTask, Question } from '../../sdk/index.js';

/** What a tool is given: checked by itself, because a model or a human wrote it. */
export type Arguments = Record<string, unknown>;

/** Something the concierge can do, whether a rule or a model asked for it. */
export interface ConciergeTool {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** What a human is asked before it runs; a tool without it runs at once. */
  question?(args: Arguments): Question;
  /** @param data what the human filled in, for a tool that asked with a form */
  run(args: Arguments, task: AgentTask, data: Arguments): Promise<string>;
}

/** An argument as text; empty where there is none. */
export function textArgument(args: Arguments, name: string): string {
  const value = args[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
