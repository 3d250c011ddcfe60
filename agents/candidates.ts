import type { Tx } from '../db/pool.js';

/** The agent that a caller requests for a session: an instance, a type, or both. */
export interface NamedAgent {
  instance_id?: string | undefined;
  agent_type?: string | undefined;
}

/** An agent that can take a session. */
export interface Candidate {
  instance_id: string;
  agent_type: string;
}

/** Whether a matching agent is registered and reachable, regardless of its load. */
export async function isRoutable(tx: Tx, tenantId: string, { instance_id, agent_type }: NamedAgent): Promise<boolean> {
  const found = await tx.query(
    `SELECT 1 FROM agents a WHERE a.tenant_id = $1 AND is_routable(a) AND ($2::text IS NULL OR a.instance_id = $2)
        AND ($3::text IS NULL OR a.agent_type = $3) LIMIT 1`,
    [tenantId, instance_id ?? null, agent_type ?? null],
  );
  return found.length > 0;
}

/** The best matching agent that has room, its capacity locked until the transaction ends; null when none has room. */
export async function chooseBest(tx: Tx, tenantId: string, named: NamedAgent): Promise<Candidate | null> {
  const [agent] = await tx.query<Candidate & Record<string, unknown>>(
    `SELECT instance_id, agent_type FROM choose_best(jsonb_populate_record(NULL::routing, jsonb_build_object('tenant_id', $1::text)), $2, $3, NULL)
      WHERE instance_id IS NOT NULL`,
    [tenantId, named.instance_id ?? null, named.agent_type ?? null],
  );
  return agent ?? null;
}
