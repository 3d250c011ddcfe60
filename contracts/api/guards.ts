import { z } from 'zod';

/** The guards of the platform (decisions.md, Guards). */
export const GuardName = z.enum(['path', 'egress', 'secrets', 'prompt_injection', 'limits']);
export type GuardName = z.infer<typeof GuardName>;

/** What happens to content in which a guard finds something; each is recorded: `guard.allowed`, `guard.approval_required`, `guard.denied`. */
export const GuardDecision = z.enum(['allow', 'require_approval', 'deny']);
export type GuardDecision = z.infer<typeof GuardDecision>;

/** Where content is inspected: what goes to an agent, what comes from one, the arguments and the result of a tool call. */
export const GuardStage = z.enum(['message', 'output', 'tool_arguments', 'tool_result']);
export type GuardStage = z.infer<typeof GuardStage>;
