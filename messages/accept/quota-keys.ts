import type { Db } from '../../db/pool.js';
import type { QuotaKeys } from '../../usage/quotas.js';
import type { KeyKind } from '../../usage/tenant-limits.js';
import type { NewMessage } from './accept-transaction.js';

/** What the accept transaction finds for a message that does not say it: the user of its session or of an agent's work, and the type it goes to. */
const FOUND = `
  SELECT coalesce(s.user_id, CASE WHEN cardinality(w.users) = 1 THEN w.users[1] END) AS user_id,
         coalesce(a.agent_type, s.agent_type, default_target($1)) AS agent_type
    FROM (SELECT $1::text AS tenant_id) t
    LEFT JOIN LATERAL work_of(jsonb_populate_record(NULL::accept_call, $4)) w ON $4::jsonb IS NOT NULL
    LEFT JOIN sessions s ON s.tenant_id = t.tenant_id AND s.session_id = $2
    LEFT JOIN agents a ON a.tenant_id = t.tenant_id AND a.instance_id = $3`;

/** The keys of a message for which its tenant has limits. Costs a round trip only where the tenant has such limits and the message does not name them. */
export async function quotaKeys(db: Db, draft: NewMessage, kinds: readonly KeyKind[]): Promise<QuotaKeys> {
  const { tenant_id, credential_id, user_id, want_agent_type, want_instance_id, requested_context } = draft;
  const has = (kind: KeyKind) => kinds.includes(kind);
  const { sender_agent_type, trace_id, parent_span_id } = draft;
  const work =
    sender_agent_type !== null && trace_id !== null ? { tenant_id, sender_agent_type, trace_id, parent_span_id } : null;
  const mayHaveUser = user_id === null && (requested_context !== '' || work !== null);
  const isOpen = (has('user') && mayHaveUser) || (has('agent_type') && want_agent_type === null);
  const values = [tenant_id, requested_context, want_instance_id, work && JSON.stringify(work)];
  const [found] = isOpen
    ? await db.tenant(tenant_id, (tx) => tx.query<{ user_id: string | null; agent_type: string | null }>(FOUND, values))
    : [];
  return {
    ...(has('user') && { user: user_id ?? found?.user_id ?? '' }),
    ...(has('credential') && { credential: credential_id }),
    ...(has('agent_type') && { agent_type: want_agent_type ?? found?.agent_type ?? '' }),
  };
}
