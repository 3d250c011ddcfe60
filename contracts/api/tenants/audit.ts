import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AnyId, Instant, JsonObject, ok, Principal, Timestamp } from '../../primitives.js';
import { ADMIN, EXTENSION, post } from '../operation.js';

/** Everything that administers a tenant, and `request.decide`: a decision about a request. */
export const AUDIT_ACTIONS = [
  'policy.create',
  'policy.update',
  'policy.delete',
  'guard.update',
  'alert_rule.create',
  'alert_rule.update',
  'alert_rule.delete',
  'credential.create',
  'credential.rotate',
  'credential.revoke',
  'user.revoke',
  'limits.set',
  'price.set',
  'default_type.set',
  'tool_owner.set',
  'agent.register',
  'agent.deregister',
  'agent.drain',
  'agent.undrain',
  'agent_type.allow',
  'agent_type.disallow',
  'tenant.create',
  'tenant.update',
  'tenant.delete',
  'operator.token',
  'console.sign_in',
  'console.sign_out',
  'request.decide',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export const AuditEntry = z.object({
  audit_id: z.string(),
  at: Timestamp,
  principal: Principal,
  action: z.string(),
  target: z.object({ type: z.string(), id: z.string(), name: z.string().optional() }),
  ip: z.string().optional(),
  /** As the API shows the target, without secrets; null where there was, or is, none. */
  before: JsonObject.nullable().optional(),
  after: JsonObject.nullable().optional(),
  /** Of each line of a stream: where to go on after it. */
  cursor: z.string().optional(),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

const GetAuditRequest = z.strictObject({
  /** Only this entry. */
  audit_id: AnyId.optional(),
  /** Its id. */
  principal: z.string().min(1).max(256).optional(),
  /** An action, or all of a kind: `policy.*`. */
  action: z
    .string()
    .regex(/^[a-z_]+\.([a-z_]+|\*)$/, 'must be an action as policy.update, or policy.*')
    .max(64)
    .optional(),
  /** Its id. */
  target: z.string().min(1).max(256).optional(),
  from: Instant.optional(),
  to: Instant.optional(),
  sort: z.enum(['newest', 'oldest']).default('newest'),
  page_size: z.int().min(1).max(LIMITS.pageSizeMax).default(LIMITS.pageSizeDefault),
  cursor: z.string().max(512).optional(),
  /** `jsonl`: every entry from the cursor on, each in a line of its own with its cursor. */
  format: z.enum(['json', 'jsonl']).default('json'),
});
export type GetAuditRequest = z.infer<typeof GetAuditRequest>;

export const AUDIT_OPERATIONS = {
  getAudit: post('/audit/get', ADMIN, 'Who administered what, and who decided what; as JSON Lines too', {
    request: GetAuditRequest,
    response: ok({
      entries: z.array(AuditEntry),
      /** Where to go on; with `sort: "oldest"` also after the newest entry, for those that follow. */
      next_cursor: z.string().optional(),
    }),
    lines: AuditEntry,
    ...EXTENSION,
  }),
};
