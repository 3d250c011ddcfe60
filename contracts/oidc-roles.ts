import { z } from 'zod';
import { AnyId, Scope } from './primitives.js';

/** Names of approvers in one tenant: the token of a session has them all, and its cookie may have 4 KB. */
const APPROVERS_MAX = 16;

/** Not the name of a scope or of something that has an id, which policies may name as well. */
const ApproverName = z
  .string()
  .regex(/^(?!cred_|per_|op_)[\w.@-]{1,64}$/, 'must be 1 to 64 letters, digits or . _ @ - and no id')
  .refine((name) => !Scope.safeParse(name).success, 'must not be the name of a scope');

const OidcRole = z
  .strictObject({
    /** A value of the claim OIDC_CLAIM_ROLES. */
    role: z.string().min(1).max(256),
    tenant: AnyId.optional(),
    scopes: z.array(Scope).min(1).default(['read']),
    /** Names by which the `approvers` of policies name whoever has the role. */
    approvers: z.array(ApproverName).default([]),
    operator: z.literal(true).optional(),
  })
  .refine(({ tenant, operator }) => (tenant === undefined) !== (operator === undefined), {
    error: 'needs either "tenant" or "operator": true',
  });
export type OidcRole = z.infer<typeof OidcRole>;

/** What the values of a claim give: a right in a tenant each, or the role of an operator. */
export const OidcRoles = z.array(OidcRole).superRefine((roles, context) => {
  for (const [tenant, names] of approversByTenant(roles))
    if (names.size > APPROVERS_MAX)
      context.addIssue(`more than ${APPROVERS_MAX} different approvers for the tenant ${tenant}`);
});

function approversByTenant(roles: readonly OidcRole[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { tenant, approvers } of roles)
    if (tenant !== undefined) found.set(tenant, new Set([...(found.get(tenant) ?? []), ...approvers]));
  return found;
}
