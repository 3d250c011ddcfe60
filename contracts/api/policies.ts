import { z } from 'zod';

/** What a policy is about (decisions.md, Policies). */
export const PolicyScope = z.enum(['admission', 'dispatch', 'tool', 'plan', 'session']);
export type PolicyScope = z.infer<typeof PolicyScope>;

/** The actions of each scope; those of `tool` are all `call`. */
export const POLICY_ACTIONS = {
  admission: ['send', 'register'],
  dispatch: ['dispatch'],
  tool: ['call'],
  plan: ['create', 'approve', 'step'],
  session: ['init', 'invite'],
} as const satisfies Record<PolicyScope, readonly string[]>;
