import type { z } from 'zod';
import type { Caller } from '../../contracts/api/auth.js';
import type { Executor } from '../../contracts/api/messages.js';
import type {
  ApprovalRecord,
  ExportApprovalsRequest,
  ExportedApproval,
} from '../../contracts/api/policies/approvals.js';
import { actsAs, isSentBy } from '../../contracts/permissions.js';
import { NO_AGENT, scopeIncludes } from '../../contracts/primitives.js';
import { readContent } from '../../db/pages/page-content.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';

/** A row of the view `decision_details`. */
interface DecisionRow {
  tenant_id: string;
  message_id: string | null;
  plan_id: string | null;
  approval_id: string;
  request_id: string;
  kind: ApprovalRecord['kind'];
  source: ApprovalRecord['source'];
  title: string | null;
  tool: string | null;
  /** Null with `whole: false` if the response has no room for them. */
  arguments: Record<string, unknown> | null;
  whole?: boolean;
  executor: Executor | null;
  outcome: 'succeeded' | 'failed' | 'expired' | null;
  error_code: string | null;
  settled_at: Date | null;
  resolution: string;
  principal_type: ApprovalRecord['principal']['type'];
  principal_id: string;
  digest: string;
  arguments_changed: boolean;
  comment: string | null;
  ip: string | null;
  decided_at: Date;
}

const COLUMNS = `tenant_id, message_id, plan_id, approval_id, request_id, kind, source, title, tool, executor, outcome, error_code, settled_at,
  resolution, principal_type, principal_id, digest, arguments_changed, comment, ip, decided_at`;
const DECISIONS = readContent({
  name: 'decision_details',
  key: 'approval_id',
  columns: COLUMNS,
  content: { arguments: 'NULL' },
});
const OF_MESSAGE =
  'SELECT approval_id FROM input_decisions WHERE tenant_id = $1 AND message_id = $2 ORDER BY approval_id';
const OF_PLAN = 'SELECT approval_id FROM input_decisions WHERE tenant_id = $1 AND plan_id = $2 ORDER BY approval_id';
/** Decisions that one transaction of an export reads, with the arguments of each. */
const PART = 100;
const NEXT_PART = `
  SELECT ${COLUMNS}, arguments FROM decision_details
   WHERE tenant_id = $1 AND approval_id > $2 AND decided_at >= coalesce($3::timestamptz, '-infinity') AND decided_at < coalesce($4::timestamptz, 'infinity')
   ORDER BY approval_id LIMIT ${PART}`;

async function decisionsOf(tx: Tx, tenantId: string, keys: string, id: string): Promise<DecisionRow[]> {
  const found = await tx.query<{ approval_id: string }>(keys, [tenantId, id]);
  if (found.length === 0) return [];
  return tx.query<DecisionRow>(DECISIONS, [tenantId, found.map(({ approval_id }) => approval_id)]);
}

function outcomeOf({ outcome, error_code, settled_at }: DecisionRow): Pick<ApprovalRecord, 'outcome'> {
  if (outcome === null || settled_at === null) return {};
  return { outcome: { state: outcome, ...(error_code !== null && { error_code }), at: settled_at.toISOString() } };
}

function recordOf(row: DecisionRow): ApprovalRecord {
  const { approval_id, request_id, kind, source, resolution, digest, arguments_changed } = row;
  return {
    ...{ approval_id, request_id, kind, source, resolution },
    ...(row.title !== null && { title: row.title }),
    ...(row.tool !== null && { tool: row.tool }),
    ...(row.arguments !== null && { arguments: row.arguments }),
    ...(row.whole === false && { truncated: true as const }),
    ...(row.executor !== null && { executor: row.executor }),
    ...outcomeOf(row),
    principal: { type: row.principal_type, id: row.principal_id },
    ...(row.comment !== null && { comment: row.comment }),
    ...{ digest, arguments_changed },
    ...(row.ip !== null && { ip: row.ip }),
    decided_at: row.decided_at.toISOString(),
  };
}

function exportedOf(row: DecisionRow): ExportedApproval {
  const { tenant_id, message_id, plan_id } = row;
  const about = { ...(message_id !== null && { message_id }), ...(plan_id !== null && { plan_id }) };
  return { ...recordOf(row), tenant_id, ...about };
}

/** The owner of a message or plan: its credentials, and the agent type if an agent sent it. */
interface Owner {
  senders: string[];
  sender_agent_type: string | null;
}

/** How the decisions about a message or a plan are found, and whose it is. */
const ABOUT = {
  message: {
    owner: `SELECT ARRAY[credential_id, first_credential_id] AS senders, sender_agent_type FROM messages WHERE tenant_id = $1 AND message_id = $2`,
    decisions: OF_MESSAGE,
  },
  plan: {
    owner: `SELECT ARRAY[credential_id] AS senders, nullif(agent_type, '${NO_AGENT}') AS sender_agent_type FROM plans WHERE tenant_id = $1 AND plan_id = $2`,
    decisions: OF_PLAN,
  },
};

/** Whether a caller owns a message or plan: by its credential, or as an agent by its type. */
function isOwner(caller: Caller, owner: Owner): boolean {
  return actsAs(caller) === null ? owner.senders.includes(caller.credential_id) : isSentBy(caller, owner);
}

/**
 * The decisions about a message or a plan, the oldest first. They are kept after the message or plan is deleted.
 * @throws PlatformError NOT_FOUND; forbidden for a caller who does not own it and lacks the scope `admin`
 */
export async function getApprovals(
  db: Db,
  caller: Caller,
  what: keyof typeof ABOUT,
  id: string,
): Promise<ApprovalRecord[]> {
  const { tenant_id } = caller;
  const acts = actsAs(caller) !== null;
  const mayReadAll = !acts && scopeIncludes(caller.scopes, 'admin');
  const { owner, rows } = await db.tenant(tenant_id, async (tx) => {
    const [owner] = await tx.query<Owner>(ABOUT[what].owner, [tenant_id, id]);
    return { owner, rows: await decisionsOf(tx, tenant_id, ABOUT[what].decisions, id) };
  });
  const notFound = new PlatformError('NOT_FOUND', `There is no ${what} of that ${what}_id.`);
  if (!owner && rows.length === 0) throw notFound;
  if (mayReadAll || (owner && isOwner(caller, owner))) return rows.map(recordOf);
  if (acts) throw notFound;
  throw new PlatformError('forbidden', `This needs the scope admin, unless the ${what} is yours.`);
}

/** The decisions about a plan, without network addresses, for everybody who may see the plan. */
export async function planDecisions(
  tx: Tx,
  { tenant_id, plan_id }: { tenant_id: string; plan_id: string },
): Promise<Omit<ApprovalRecord, 'ip'>[]> {
  const rows = await decisionsOf(tx, tenant_id, OF_PLAN, plan_id);
  return rows.map((row) => recordOf({ ...row, ip: null }));
}

/** All decisions of a tenant in a range of time, the oldest first, read in parts while the consumer takes them. */
export async function* exportApprovals(
  db: Db,
  tenantId: string,
  { since, until }: z.infer<typeof ExportApprovalsRequest>,
): AsyncGenerator<ExportedApproval> {
  let after = '';
  for (;;) {
    const values = [tenantId, after, since ?? null, until ?? null];
    const rows = await db.tenant(tenantId, (tx) => tx.query<DecisionRow>(NEXT_PART, values));
    for (const row of rows) yield exportedOf(row);
    if (rows.length < PART) return;
    after = rows.at(-1)?.approval_id ?? after;
  }
}
