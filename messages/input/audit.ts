import type { z } from 'zod';
import type { Caller } from '../../contracts/api/auth.js';
import type {
  ApprovalRecord,
  ExportApprovalsRequest,
  ExportedApproval,
} from '../../contracts/api/policies/approvals.js';
import { actsAs, isSentBy } from '../../contracts/permissions.js';
import { scopeIncludes } from '../../contracts/primitives.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageRow } from '../read/rows.js';

/** A row of `input_decisions`. */
interface DecisionRow extends Record<string, unknown> {
  tenant_id: string;
  message_id: string;
  approval_id: string;
  request_id: string;
  kind: ApprovalRecord['kind'];
  source: ApprovalRecord['source'];
  resolution: string;
  principal_type: ApprovalRecord['principal']['type'];
  principal_id: string;
  digest: string;
  arguments_changed: boolean;
  comment: string | null;
  ip: string | null;
  decided_at: Date;
}

const COLUMNS = `tenant_id, message_id, approval_id, request_id, kind, source, resolution, principal_type, principal_id, digest,
  arguments_changed, comment, ip, decided_at`;
const OF_MESSAGE = `SELECT ${COLUMNS} FROM input_decisions WHERE tenant_id = $1 AND message_id = $2 ORDER BY approval_id`;
/** Decisions that one transaction of an export reads. */
const PART = 1_000;
const NEXT_PART = `
  SELECT ${COLUMNS} FROM input_decisions
   WHERE tenant_id = $1 AND approval_id > $2 AND decided_at >= coalesce($3::timestamptz, '-infinity') AND decided_at < coalesce($4::timestamptz, 'infinity')
   ORDER BY approval_id LIMIT ${PART}`;

function recordOf(row: DecisionRow): ApprovalRecord {
  const { approval_id, request_id, kind, source, resolution, digest, arguments_changed } = row;
  return {
    ...{ approval_id, request_id, kind, source, resolution },
    principal: { type: row.principal_type, id: row.principal_id },
    ...(row.comment !== null && { comment: row.comment }),
    ...{ digest, arguments_changed },
    ...(row.ip !== null && { ip: row.ip }),
    decided_at: row.decided_at.toISOString(),
  };
}

type Sender = Pick<MessageRow, 'credential_id' | 'sender_agent_type'>;

/** Whether a caller sent a message: with this credential, or as an agent of this type. */
function hasSent(caller: Caller, message: Sender): boolean {
  return actsAs(caller) === null ? caller.credential_id === message.credential_id : isSentBy(caller, message);
}

/**
 * The decisions about a message, the oldest first. They outlive the message.
 * @throws PlatformError NOT_FOUND; forbidden for a caller of the tenant who has neither sent the message nor the scope `admin`
 */
export async function getApprovals(db: Db, caller: Caller, messageId: string): Promise<ApprovalRecord[]> {
  const { tenant_id } = caller;
  const acts = actsAs(caller) !== null;
  const mayReadAll = !acts && scopeIncludes(caller.scopes, 'admin');
  const { message, rows } = await db.tenant(tenant_id, async (tx) => {
    const [message] = await tx.query<Sender & Record<string, unknown>>(
      'SELECT credential_id, sender_agent_type FROM messages WHERE tenant_id = $1 AND message_id = $2',
      [tenant_id, messageId],
    );
    return { message, rows: await tx.query<DecisionRow>(OF_MESSAGE, [tenant_id, messageId]) };
  });
  const isSender = message !== undefined && hasSent(caller, message);
  if (!message && rows.length === 0) throw notFound();
  if (isSender || mayReadAll) return rows.map(recordOf);
  if (acts) throw notFound();
  throw new PlatformError('forbidden', 'This needs the scope admin, unless you sent the message.');
}

function notFound(): PlatformError {
  return new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
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
    for (const row of rows) yield { ...recordOf(row), tenant_id: row.tenant_id, message_id: row.message_id };
    if (rows.length < PART) return;
    after = rows.at(-1)?.approval_id ?? after;
  }
}
