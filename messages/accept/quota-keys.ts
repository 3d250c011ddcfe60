import type { Db } from '../../db/pool.js';
import type { QuotaKeys } from '../../usage/quotas.js';
import type { KeyKind } from '../../usage/tenant-limits.js';
import type { NewMessage } from './accept-transaction.js';
import { checkTypes, TYPES_WITH_SKILL } from './skill-types.js';

/**
 * Finds, as the accept transaction does, what a message does not name: its user (of its session, or of the sending agent's work), and the agent type that it
 * goes to. A message that names only a skill may go to every type that has it.
 */
const FOUND = `
  SELECT coalesce(s.user_id, CASE WHEN cardinality(w.users) = 1 THEN w.users[1] END) AS user_id,
         CASE WHEN coalesce(a.agent_type, s.agent_type) IS NOT NULL THEN ARRAY[coalesce(a.agent_type, s.agent_type)]
              WHEN $2::text IS NOT NULL THEN ARRAY(${TYPES_WITH_SKILL})
              ELSE array_remove(ARRAY[default_target($1)], NULL) END AS agent_types
    FROM (SELECT $1::text AS tenant_id) t
    LEFT JOIN LATERAL work_of(jsonb_populate_record(NULL::accept_call, $5)) w ON $5::jsonb IS NOT NULL
    LEFT JOIN sessions s ON s.tenant_id = t.tenant_id AND s.session_id = $3
    LEFT JOIN agents a ON a.tenant_id = t.tenant_id AND a.instance_id = $4`;

interface Found {
  user_id: string | null;
  agent_types: string[];
}

/**
 * The keys (user, credential, agent type) of a message for which its tenant has quotas. Costs a round trip only if the message does not name one of them.
 * @throws PlatformError INVALID_PARAMS where too many types have the skill of a message that names no type
 */
export async function quotaKeys(db: Db, draft: NewMessage, kinds: readonly KeyKind[]): Promise<QuotaKeys> {
  const { tenant_id, credential_id, user_id, want_agent_type, want_instance_id, want_skill_id } = draft;
  const { requested_context, sender_agent_type, trace_id, parent_span_id } = draft;
  const has = (kind: KeyKind) => kinds.includes(kind);
  const work =
    sender_agent_type !== null && trace_id !== null ? { tenant_id, sender_agent_type, trace_id, parent_span_id } : null;
  const mayHaveUser = user_id === null && (requested_context !== '' || work !== null);
  const isOpen = (has('user') && mayHaveUser) || (has('agent_type') && want_agent_type === null);
  const values = [tenant_id, want_skill_id, requested_context, want_instance_id, work && JSON.stringify(work)];
  const [found] = isOpen ? await db.tenant(tenant_id, (tx) => tx.query<Found>(FOUND, values)) : [];
  const user = user_id ?? found?.user_id ?? '';
  const types = want_agent_type === null ? (found?.agent_types ?? []) : [want_agent_type];
  if (has('agent_type')) checkTypes(types);
  return {
    ...(has('user') && user !== '' && { user: [user] }),
    ...(has('credential') && { credential: [credential_id] }),
    ...(has('agent_type') && { agent_type: types }),
  };
}
