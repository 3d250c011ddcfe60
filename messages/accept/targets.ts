import type { Db, Tx } from '../../db/pool.js';
import type { RunningRow, SessionBinding } from '../read/rows.js';
import type { NewMessage } from './accept-transaction.js';
import { type Names, type Registered, requiredText, type TargetNames, unknownText, waitedText } from './target-text.js';

/** Names that a text lists at most; `…` stands for the others. */
const LISTED_MAX = 20;
/** Agents that are counted for the text about a message that no agent took. */
const COUNTED_MAX = 1_000;

function cut(names: string[]): Names {
  return { names: names.slice(0, LISTED_MAX), more: names.length > LISTED_MAX };
}

async function registeredTypes(tx: Tx, tenantId: string): Promise<Names> {
  const rows = await tx.query<{ type: string }>(
    `WITH RECURSIVE types (type) AS (
       SELECT registered_type_after($1, '') UNION ALL SELECT registered_type_after($1, type) FROM types WHERE type IS NOT NULL)
     SELECT type FROM types WHERE type IS NOT NULL LIMIT ${LISTED_MAX + 1}`,
    [tenantId],
  );
  return cut(rows.map(({ type }) => type));
}

async function skillsOf(tx: Tx, tenantId: string, { instance_id, agent_type }: TargetNames): Promise<Names> {
  const rows = await tx.query<{ id: string }>(
    `SELECT DISTINCT skill ->> 'id' AS id FROM agents a
      CROSS JOIN LATERAL jsonb_array_elements(a.skills ||
        CASE WHEN jsonb_typeof(a.agent_card -> 'skills') = 'array' THEN a.agent_card -> 'skills' ELSE '[]' END) skill
      WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL AND ($2::text IS NULL OR a.instance_id = $2)
        AND ($3::text IS NULL OR a.agent_type = $3) AND jsonb_typeof(skill -> 'id') = 'string'
      ORDER BY id LIMIT ${LISTED_MAX + 1}`,
    [tenantId, instance_id, agent_type],
  );
  return cut(rows.map(({ id }) => id));
}

async function instanceOf(tx: Tx, tenantId: string, instanceId: string | null): Promise<Registered['instance']> {
  const [row] = await tx.query<{ agent_type: string; registered: boolean }>(
    'SELECT agent_type, deregistered_at IS NULL AS registered FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [tenantId, instanceId],
  );
  return row ?? null;
}

/** The error text for a message without a target. */
export function targetRequiredText(db: Db, tenantId: string): Promise<string> {
  return db.tenant(tenantId, async (tx) => requiredText(await registeredTypes(tx, tenantId)));
}

/** The error text for a message whose target is not registered. @param type the type that was looked up; null for any */
export function targetUnknownText(db: Db, draft: NewMessage, type: string | null): Promise<string> {
  const { tenant_id, want_instance_id, want_skill_id } = draft;
  const target = { instance_id: want_instance_id, agent_type: type, skill_id: want_skill_id };
  return db.tenant(tenant_id, async (tx) => {
    const instance = await instanceOf(tx, tenant_id, want_instance_id);
    const types = await registeredTypes(tx, tenant_id);
    const [registered] = await tx.query<{ type: boolean }>('SELECT target_registered($1, NULL, $2, NULL) AS type', [
      tenant_id,
      type,
    ]);
    const skills = want_skill_id === null ? cut([]) : await skillsOf(tx, tenant_id, target);
    return unknownText(target, { types, type: registered?.type === true, skills, instance });
  });
}

/** The target of a stored message. If it is bound to another instance than the one that it asks for, it waits for any agent of the type. */
function targetOf(row: RunningRow, session: Pick<SessionBinding, 'agent_type' | 'instance_id'>): TargetNames {
  const agent_type = row.agent_type ?? row.want_agent_type ?? session.agent_type;
  const bound = row.instance_id ?? (agent_type === session.agent_type ? session.instance_id : null);
  const isElsewhere = bound !== null && bound !== row.want_instance_id;
  return { instance_id: isElsewhere ? null : row.want_instance_id, agent_type, skill_id: row.want_skill_id };
}

/** The error text for a message that no agent took in time. */
export async function targetWaitedText(
  tx: Tx,
  row: RunningRow,
  session: Pick<SessionBinding, 'agent_type' | 'instance_id'>,
  waitedMs: number,
): Promise<string> {
  const target = targetOf(row, session);
  const rows = await tx.query<{ state: string; count: number }>(
    `SELECT state, count(*)::int AS count FROM (
       SELECT CASE WHEN a.drained AND a.status IN ('available', 'busy', 'unknown') THEN 'draining'
                   WHEN a.status NOT IN ('available', 'unknown') THEN a.status
                   WHEN a.deployment_mode <> 'hosted' AND a.mesh_id IS NULL THEN 'offline'
                   WHEN is_saturated(a) THEN 'saturated'
                   WHEN is_full(a, agent_load(a.tenant_id, a.instance_id)) THEN 'full'
                   ELSE 'free' END AS state
         FROM agents a
        WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL AND ($2::text IS NULL OR a.instance_id = $2)
          AND ($3::text IS NULL OR a.agent_type = $3) AND has_skill(a, $4) LIMIT ${COUNTED_MAX}) AS few GROUP BY state`,
    [row.tenant_id, target.instance_id, target.agent_type, target.skill_id],
  );
  return waitedText(target, waitedMs, Object.fromEntries(rows.map(({ state, count }) => [state, count])));
}
