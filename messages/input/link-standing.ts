import type { ApprovalPrincipal } from '../../contracts/api/policies/approvals.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AskedRequest } from '../read/rows.js';
import type { FoundToken } from './callback-tokens.js';
import { holderOf } from './identify.js';
import type { Asker } from './principals.js';

/** A decision as people read it. */
export interface LinkedDecision {
  /** Who decided, in words: `“Anna”`, or `whoever had the link of the rule “payments”`. */
  by: string;
  resolution: string;
  /** ISO 8601. */
  at: string;
}

/** What the holder of a link can still do about an open request, and what others did. */
export interface LinkStanding {
  /** Why no decision of the holder would be taken. */
  refusal?: string;
  /** Why the holder can reject and not approve. */
  approval_refusal?: string;
  /** What was decided about the request as it is now, oldest first. */
  decisions: LinkedDecision[];
  /** The approvers, by name, that the request names and that have not decided. */
  approvers: string[];
}

interface DecisionRow {
  principal_type: ApprovalPrincipal['type'];
  principal_id: string;
  name: string | null;
  resolution: string;
  decided_at: Date;
}

const DECISIONS = `
  SELECT d.principal_type, d.principal_id, coalesce(c.name, r.name) AS name, d.resolution, d.decided_at
    FROM input_decisions d
    JOIN input_requests q ON q.tenant_id = d.tenant_id AND q.request_id = d.request_id AND q.digest = d.digest
    LEFT JOIN credentials c ON (d.principal_type = 'credential' OR d.principal_type = 'person' AND d.principal_id LIKE 'per\\_%')
     AND c.tenant_id = d.tenant_id AND c.credential_id = d.principal_id
    LEFT JOIN alert_rules r ON d.principal_type IN ('callback', 'page') AND r.tenant_id = d.tenant_id AND r.rule_id = d.principal_id
   WHERE d.tenant_id = $1 AND d.request_id = $2 ORDER BY d.approval_id`;

/** A principal in words, its name before its id. */
function principalText({ principal_type: type, principal_id: id, name }: DecisionRow): string {
  switch (type) {
    case 'credential':
      return name === null ? id : `“${name}” (${id})`;
    case 'person':
      return name === null ? `the user “${id}”` : `“${name}” (${id})`;
    case 'page':
      return `whoever had the link of the rule “${name ?? id}”`;
    case 'callback':
      return `the receiver of the rule “${name ?? id}”`;
    case 'slack':
      return `the Slack user ${id}`;
    case 'temporal':
      return 'an operator of the platform';
    case 'system':
      return 'nobody in time';
    default:
      return type satisfies never;
  }
}

const APPROVERS = 'SELECT credential_id, name FROM credentials WHERE tenant_id = $1 AND credential_id = ANY ($2)';

async function namesOf(tx: Tx, tenantId: string, approvers: string[]): Promise<string[]> {
  if (approvers.length === 0) return [];
  const rows = await tx.query<{ credential_id: string; name: string }>(APPROVERS, [tenantId, approvers]);
  const names = new Map(rows.map(({ credential_id, name }) => [credential_id, `“${name}” (${credential_id})`]));
  return approvers.map((id) => names.get(id) ?? id);
}

const COUNTED =
  'An approval by this link would not count: whoever wrote its rule has approved already, or another receiver of the rule, who may be the same.';
const SECOND = `
  SELECT is_second_approval(q, q.digest, $3) AS is_second,
         EXISTS (SELECT 1 FROM input_decisions d WHERE d.tenant_id = $1 AND d.request_id = $2 AND d.digest = q.digest AND d.voter = $4) AS has_voted
    FROM input_requests q WHERE q.tenant_id = $1 AND q.request_id = $2`;

/** Why an answer by this link would be refused, in the words of the decision itself. */
async function refusalOf(
  tx: Tx,
  token: FoundToken,
  asker: Asker,
  request: AskedRequest,
): Promise<Pick<LinkStanding, 'refusal' | 'approval_refusal'>> {
  if (token.used_at !== null) return { refusal: 'Your decision by this link is recorded.' };
  const principal = holderOf(token, 'page');
  try {
    const standsFor = await principal.mayAnswer(tx, asker, request);
    const values = [asker.tenant_id, request.request_id, standsFor, principal.voter];
    const [before] = await tx.query<{ is_second: boolean; has_voted: boolean }>(SECOND, values);
    if (before?.has_voted) return { refusal: 'You have decided about this request by another link.' };
    return before?.is_second ? { approval_refusal: COUNTED } : {};
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'forbidden') throw error;
    return { refusal: error.message };
  }
}

/** What the holder of a link can still do, so that the page shows no button that would be refused. */
export async function standingOf(
  tx: Tx,
  token: FoundToken,
  asker: Asker,
  request: AskedRequest & { state: string },
): Promise<LinkStanding> {
  const rows = await tx.query<DecisionRow>(DECISIONS, [asker.tenant_id, request.request_id]);
  const left = request.approvers.filter((id) => !rows.some(({ principal_id }) => principal_id === id));
  return {
    ...(request.state === 'pending' && (await refusalOf(tx, token, asker, request))),
    decisions: rows.map((row) => ({
      by: principalText(row),
      resolution: row.resolution,
      at: row.decided_at.toISOString(),
    })),
    approvers: await namesOf(tx, asker.tenant_id, left),
  };
}
