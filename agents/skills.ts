import type { Tx } from '../db/pool.js';

/** Beyond this many skills, or bytes of them, a fleet's card lists the first by id. */
const MOST = 500;
const MOST_BYTES = 1024 * 1024;

/** What the agents of a fleet say they can do, one entry an id, and when that last changed. */
export interface FleetSkills {
  skills: Record<string, unknown>[];
  changed_at: Date | null;
}

/** Of a skill only what a card tells; the rest may be anything. */
const SKILLS = `
  WITH own AS (
    SELECT DISTINCT ON (skill ->> 'id') skill ->> 'id' AS id,
      jsonb_build_object('id', skill -> 'id', 'name', skill -> 'name', 'description', skill -> 'description',
        'tags', skill -> 'tags', 'examples', skill -> 'examples', 'inputModes', skill -> 'inputModes',
        'outputModes', skill -> 'outputModes') AS skill
      FROM agents a
      CROSS JOIN LATERAL jsonb_array_elements(a.skills ||
        CASE WHEN jsonb_typeof(a.agent_card -> 'skills') = 'array' THEN a.agent_card -> 'skills' ELSE '[]' END) skill
     WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL AND jsonb_typeof(skill -> 'id') = 'string' AND skill ->> 'id' <> ''
     ORDER BY skill ->> 'id', a.instance_id
     LIMIT ${MOST}),
  measured AS (SELECT id, skill, sum(octet_length(skill::text)) OVER (ORDER BY id) AS bytes FROM own)
  SELECT skill FROM measured WHERE bytes <= ${MOST_BYTES} ORDER BY id`;

/** The skills of a tenant's registered agents, from their registrations and their cards. */
export async function listSkills(tx: Tx, tenantId: string): Promise<FleetSkills> {
  const rows = await tx.query<{ skill: Record<string, unknown> }>(SKILLS, [tenantId]);
  const [changed] = await tx.query<{ at: Date | null }>(
    'SELECT max(greatest(registered_at, deregistered_at)) AS at FROM agents WHERE tenant_id = $1',
    [tenantId],
  );
  return { skills: rows.map(({ skill }) => skill), changed_at: changed?.at ?? null };
}
