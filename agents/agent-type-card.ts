import { LRUCache } from 'lru-cache';
import { AgentType } from '../contracts/primitives.js';
import type { Db, Tx } from '../db/pool.js';
import { type FleetSkills, listSkills } from './agent-card.js';

const KNOWN_MAX = 10_000;

/** Which agent types the tenants have. */
export interface AgentTypes {
  /** Whether an agent of the type was ever registered; a name that no type can have is not known. */
  isKnown(tenantId: string, agentType: string): Promise<boolean>;
}

/** Asks for a known type once in each process. It stays known, because rows of deregistered agents stay. */
export function createAgentTypes(db: Db): AgentTypes {
  const known = new LRUCache<string, true>({ max: KNOWN_MAX });
  return {
    async isKnown(tenantId, agentType) {
      if (!AgentType.safeParse(agentType).success) return false;
      const key = `${tenantId} ${agentType}`;
      if (known.has(key)) return true;
      const found = await db.tenant(tenantId, (tx) =>
        tx.query('SELECT 1 FROM agents WHERE tenant_id = $1 AND agent_type = $2 LIMIT 1', [tenantId, agentType]),
      );
      if (found.length === 0) return false;
      known.set(key, true);
      return true;
    },
  };
}

/** What the agents of a type say of themselves. `null` and no modes where none of them says it. */
export interface TypeDescription extends FleetSkills {
  name: string | null;
  description: string | null;
  version: string | null;
  documentation_url: string | null;
  icon_url: string | null;
  provider_organization: string | null;
  provider_url: string | null;
  input_modes: string[];
  output_modes: string[];
}

/** Distinct media types that a card lists at most. */
const MODES_MAX = 100;
/** A text member of the newest card that has it. */
const newest = (member: string) => `(array_agg(${member} ORDER BY a.registered_at DESC, a.instance_id)
    FILTER (WHERE ${member} <> ''))[1]`;
const textOf = (path: string) =>
  newest(`CASE WHEN jsonb_typeof(a.agent_card #> '{${path}}') = 'string' THEN a.agent_card #>> '{${path}}' END`);
const modes = (member: string) => `coalesce((SELECT jsonb_agg(mode ORDER BY mode) FROM (
    SELECT DISTINCT mode #>> '{}' AS mode FROM agents b
      CROSS JOIN LATERAL jsonb_path_query(b.agent_card, '$.${member}[*] ? (@.type() == "string")') AS modes (mode)
     WHERE b.tenant_id = $1 AND b.agent_type = $2 AND b.deregistered_at IS NULL ORDER BY mode LIMIT ${MODES_MAX}) AS found), '[]')`;
const DESCRIPTION = `
  SELECT ${textOf('name')} AS name, ${textOf('description')} AS description,
         coalesce(${newest('a.agent_version')}, ${textOf('version')}) AS version,
         ${textOf('documentationUrl')} AS documentation_url, ${textOf('iconUrl')} AS icon_url,
         coalesce(${newest('a.provider_organization')}, ${textOf('provider,organization')}) AS provider_organization,
         coalesce(${newest('a.provider_url')}, ${textOf('provider,url')}) AS provider_url,
         ${modes('defaultInputModes')} AS input_modes, ${modes('defaultOutputModes')} AS output_modes
    FROM agents a WHERE a.tenant_id = $1 AND a.agent_type = $2 AND a.deregistered_at IS NULL HAVING count(*) > 0`;

/** Merges the cards of a type's agents: the newest text that there is, all skills, all media types. Null when none is registered. */
export async function describeType(tx: Tx, tenantId: string, agentType: string): Promise<TypeDescription | null> {
  const [described] = await tx.query<Omit<TypeDescription, keyof FleetSkills>>(DESCRIPTION, [tenantId, agentType]);
  return described ? { ...described, ...(await listSkills(tx, tenantId, agentType)) } : null;
}
