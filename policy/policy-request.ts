import type { PolicyScope } from '../contracts/api/policies/policies.js';
import type { GuardedContent } from './guards/guarded-content.js';

/** What a policy is asked about. docs/policies.md lists the actions of each scope. */
export interface PolicyRequest {
  scope: PolicyScope;
  action: string;
  /** Of scope `tool`: the name of the tool. */
  tool?: string;
  /** What the action is about: a tool's arguments, a message's parts and metadata, a registration, the steps of a plan. */
  arguments?: Record<string, unknown>;
  /** The agent that acts, or that the action goes to; members that are not known yet are absent. */
  agent?: {
    agent_type?: string;
    instance_id?: string;
    skill_id?: string;
    /** Of an agent that registers: the ids of all its skills. */
    skill_ids?: readonly string[];
  };
  /** Members of `agent` that are absent because nobody knows them: they count against the agent. */
  unknown?: readonly ('instance_id' | 'skill_id')[];
  session?: { session_id?: string; user_id?: string };
  /** The token of whoever acts. The last three members are there if they limit it (contracts/permissions.ts). */
  token?: {
    sub: string;
    credential_id: string;
    scopes: string[];
    agent_type: string;
    user_id?: string;
    session_id?: string;
    agent_types?: string[];
  };
}

/** How a human decides, and for how long. */
export interface ApprovalTerms {
  /** Scopes, `sub`s, credentials or Slack users; none: who has the scope `admin`. */
  approvers: string[];
  /** Distinct principals who must approve. */
  quorum: number;
  timeout_seconds: number;
  reminder_seconds?: number;
  escalate_to?: string[];
  /** Whether the credential that sent the message may approve it. */
  allow_self: boolean;
  on_reject: 'fail' | 'tell_agent';
}

/** How many calls a policy may allow without a person; `countAllowedCall` of policy-store.ts counts them. */
export interface CallBound {
  policy_id: string;
  max_calls: number;
  /** It has allowed `max_calls`, and is not in force any more. */
  isSpent: boolean;
}

/** A policy that applied, as events name it. */
export interface AppliedPolicy {
  policy_id: string;
  name: string;
  reason: string;
  /** Which version of it: when it was last changed, in milliseconds since 1970. Absent where the policies cannot be read. */
  changed_at_ms?: number;
  /** The policy looks at single instances: what is decided about one does not hold for another. */
  per_instance?: true;
}

/** A guard that found something, as events name it. */
export interface GuardDecider {
  source: 'guard';
  guard: string;
  reason: string;
  path?: string;
}

/** The policy or guard that decided something other than `allow`. */
export type Decider = ({ source: 'policy' } & AppliedPolicy) | GuardDecider;

/**
 * What is decided about a request. `audits`: the policies of decision `audit` that applied. `passed`: the guards that found something and let
 * it pass. `bound`: of the policy that allows, which lets a call pass only once that is counted.
 */
export type Verdict = { audits: AppliedPolicy[]; passed?: string[] } & (
  | { decision: 'allow'; bound?: CallBound }
  /** `retryable`: the policies could not be read, or their evaluators had no room; the same request may be decided otherwise later. */
  | { decision: 'deny'; by: Decider; retryable?: true }
  /** `alsoBy`: the guard that asks beside the policy. The terms satisfy both. */
  | { decision: 'require_approval'; by: Decider; alsoBy?: GuardDecider; terms: ApprovalTerms }
);

/** Decides by the policies and guards of tenants: one in each process. Fails closed. */
export interface Policies {
  /**
   * The verdict of a tenant's policies, and of its guards over `content`. Given at once, without a promise, where the tenant's policies are in
   * memory and no evaluator is met. Never rejects: what cannot be decided is denied.
   */
  decide(tenantId: string, request: PolicyRequest, content?: GuardedContent): Verdict | Promise<Verdict>;
  /** Whether a webhook evaluator may have to be asked about the request, so that the decision has to wait for an outside service. */
  needsWebhook(tenantId: string, request: PolicyRequest): boolean;
}
