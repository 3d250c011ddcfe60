import { z } from 'zod';
import type { Caller } from '../contracts/api/auth.js';
import type { AuditEntry, GetAuditRequest } from '../contracts/api/tenants/audit.js';
import type { Principal } from '../contracts/primitives.js';
import { createCursors } from '../db/pages/cursors.js';
import { BY_INDEX } from '../db/pages/page.js';
import type { Db } from '../db/pool.js';
import type { Secrets } from '../runtime/secrets.js';

interface AuditRow {
  audit_id: string;
  position: number;
  at: Date;
  principal_type: Principal['type'];
  principal_id: string;
  principal_name: string | null;
  action: string;
  target_type: string;
  target_id: string;
  target_name: string | null;
  ip: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** Entries that one transaction of a stream reads. */
const PART = 500;

const select = (order: 'ASC' | 'DESC') => `
  SELECT e.*, (SELECT c.name FROM credentials c WHERE c.credential_id = e.principal_id AND (e.principal_type <> 'person' OR e.principal_id LIKE 'per\\_%')) AS principal_name
    FROM audit_entries e
   WHERE e.tenant_id = $1 AND ($2::bigint IS NULL OR e.position ${order === 'ASC' ? '>' : '<'} $2)
     AND ($3::text IS NULL OR e.principal_id = $3) AND ($4::text IS NULL OR e.action LIKE $4) AND ($5::text IS NULL OR e.target_id = $5)
     AND ($9::text IS NULL OR e.audit_id = $9)
     AND e.at >= coalesce($6::timestamptz, '-infinity') AND e.at < coalesce($7::timestamptz, 'infinity')
   ORDER BY e.position ${order} LIMIT $8`;
const SELECT = { oldest: select('ASC'), newest: select('DESC') };

/** An action as a pattern of LIKE. */
function patternOf(action: string | undefined): string | null {
  return action?.replaceAll('_', '\\_').replace(/\*$/, '%') ?? null;
}

function entryOf(row: AuditRow): AuditEntry {
  const { audit_id, at, action, principal_name, target_name, ip, before, after } = row;
  return {
    ...{ audit_id, at: at.toISOString() },
    principal: {
      type: row.principal_type,
      id: row.principal_id,
      ...(principal_name !== null && { name: principal_name }),
    },
    action,
    target: { type: row.target_type, id: row.target_id, ...(target_name !== null && { name: target_name }) },
    ...(ip !== null && { ip }),
    before,
    after,
  };
}

/** What reading the audit takes. */
export interface AuditDeps {
  db: Db;
  secrets: Pick<Secrets, 'macs'>;
}

function cursorsOf({ secrets }: AuditDeps, caller: Caller, request: GetAuditRequest) {
  const { principal, action, target, from, to, sort, audit_id } = request;
  const list = [caller.tenant_id, caller.sub, principal, action, target, from, to, sort, audit_id];
  return createCursors(secrets, { purpose: 'audit-cursor', list, schema: z.int() });
}

async function readRows(db: Db, tenantId: string, request: GetAuditRequest, after: number | null, limit: number) {
  const { principal = null, target = null, from = null, to = null, audit_id = null } = request;
  const values = [tenantId, after, principal, patternOf(request.action), target, from, to, limit, audit_id];
  return db.tenant(tenantId, async (tx) => {
    await tx.query(BY_INDEX);
    return tx.query<AuditRow>(SELECT[request.sort], values);
  });
}

/**
 * A page of the audit. Entries have their positions in the order of their commits, so a cursor skips none that commits late.
 * @throws PlatformError BAD_REQUEST for a cursor of another list
 */
export async function listAudit(
  deps: AuditDeps,
  caller: Caller,
  request: GetAuditRequest,
): Promise<{ entries: AuditEntry[]; next_cursor?: string }> {
  const cursors = cursorsOf(deps, caller, request);
  const after = cursors.read(request.cursor);
  const rows = await readRows(deps.db, caller.tenant_id, request, after, request.page_size + 1);
  const page = rows.slice(0, request.page_size);
  const entries = page.map(entryOf);
  if (rows.length === page.length && request.sort === 'newest') return { entries };
  return { entries, next_cursor: cursors.make(page.at(-1)?.position ?? after ?? 0) };
}

/** All entries from a cursor on, each with its own, read in parts while the consumer takes them. @throws PlatformError as `listAudit` */
export function streamAudit(deps: AuditDeps, caller: Caller, request: GetAuditRequest): AsyncGenerator<AuditEntry> {
  const cursors = cursorsOf(deps, caller, request);
  let after = cursors.read(request.cursor);
  return (async function* () {
    for (;;) {
      const rows = await readRows(deps.db, caller.tenant_id, request, after, PART);
      for (const row of rows) yield { ...entryOf(row), cursor: cursors.make(row.position) };
      if (rows.length < PART) return;
      after = rows.at(-1)?.position ?? after;
    }
  })();
}
