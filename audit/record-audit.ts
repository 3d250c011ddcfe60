import type { Caller } from '../contracts/api/auth.js';
import type { AuditAction } from '../contracts/api/tenants/audit.js';
import { principalOf } from '../contracts/permissions.js';
import type { Principal } from '../contracts/primitives.js';
import type { Tx } from '../db/pool.js';
import { newId } from '../runtime/ids.js';

/** Who makes a change in a tenant, and from where. Every function that administers something takes one. */
export interface Author {
  tenant_id: string;
  principal: Omit<Principal, 'name'>;
  ip?: string;
}

/** A change of one thing. */
export interface Change {
  action: AuditAction;
  target: { type: string; id: string; name?: string };
  /** As the API shows the target: without secrets. Null where there was, or is, none. */
  before?: object | null;
  after?: object | null;
}

/** The author of what a caller does. */
export function authorOf(caller: Caller, ip: string): Author {
  return { tenant_id: caller.tenant_id, principal: principalOf(caller), ip };
}

/** The author of what the platform does by itself. @param part of it, as `seed` */
export function platformAuthor(tenant_id: string, part: string): Author {
  return { tenant_id, principal: { type: 'system', id: part } };
}

const INSERT = `
  INSERT INTO audit_entries (tenant_id, audit_id, principal_type, principal_id, action, target_type, target_id, target_name, ip, before, after)
    SELECT $1, e.audit_id, $2, $3, e.action, e.target_type, e.target_id, e.target_name, $4, e.before, e.after
      FROM json_to_recordset($5) AS e (audit_id text, action text, target_type text, target_id text, target_name text, before json, after json)`;

/** Writes changes into the audit, in the transaction that makes them. */
export async function recordAudit(tx: Tx, author: Author, ...changes: Change[]): Promise<void> {
  if (changes.length === 0) return;
  const { tenant_id, principal, ip = null } = author;
  const entries = changes.map(({ action, target, before, after }) => ({
    ...{ audit_id: newId('aud'), action, target_type: target.type, target_id: target.id },
    ...{ target_name: target.name, before: before ?? undefined, after: after ?? undefined },
  }));
  await tx.query(INSERT, [tenant_id, principal.type, principal.id, ip, JSON.stringify(entries)]);
}
