import { type Author, recordAudit } from '../audit/record-audit.js';
import { type OfferedTool, PLATFORM_TOOLS } from '../contracts/api/tools.js';
import type { Tx } from '../db/pool.js';
import { digestOf } from '../messages/digest.js';

/** Tools of agents that are listed at most. */
const LISTED_MAX = 1_000;

interface Offer {
  name: string;
  agent_type: string;
  description: string | null;
  input_schema: Record<string, unknown> | null;
}

const OFFERS = `
  SELECT DISTINCT ON (name, a.agent_type) name_of_tool(t.tool) AS name, a.agent_type, t.tool ->> 'description' AS description,
         t.tool -> 'input_schema' AS input_schema
    FROM agents a CROSS JOIN LATERAL jsonb_array_elements(offerable_tools(a.tenant_id, a.agent_type, a.tools)) AS t (tool)
   WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL
   ORDER BY name, a.agent_type, a.registered_at, a.instance_id`;
const OWNERS = 'SELECT tool, agent_types FROM tool_owners WHERE tenant_id = $1';

/** The tools that a tenant's registered agents offer, by name and at most a thousand, after those of the platform. */
export async function listTools(tx: Tx, tenantId: string): Promise<OfferedTool[]> {
  const offers = await tx.query<Offer>(OFFERS, [tenantId]);
  const owners = await tx.query<{ tool: string; agent_types: string[] }>(OWNERS, [tenantId]);
  const ownersOf = new Map(owners.map(({ tool, agent_types }) => [tool, agent_types]));
  const byName = new Map<string, Offer[]>();
  for (const offer of offers) byName.set(offer.name, [...(byName.get(offer.name) ?? []), offer]);
  const ofPlatform = PLATFORM_TOOLS.map((name): OfferedTool => {
    return { name, offered_by: [], source: 'platform', digest: digestOf({ name, source: 'platform' }) };
  });
  const ofAgents = [...byName]
    .slice(0, LISTED_MAX)
    .map(([name, types]) => offeredTool(name, types, ownersOf.get(name)));
  return [...ofPlatform, ...ofAgents];
}

function offeredTool(name: string, offers: Offer[], owners: string[] | undefined): OfferedTool {
  const { description, input_schema } = offers[0] ?? {};
  return {
    name,
    offered_by: offers.map(({ agent_type }) => agent_type),
    source: 'agent',
    ...(description && { description }),
    ...(input_schema && { input_schema }),
    digest: digestOf({ name, source: 'agent', offers: offers.map((offer) => ({ ...offer })) }),
    ...(owners && { owners }),
  };
}

const SET = `
  INSERT INTO tool_owners (tenant_id, tool, agent_types, decided_by) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant_id, tool) DO UPDATE SET agent_types = $3, decided_by = $4, decided_at = now()`;

/** Sets which agent types may offer a tool; null: every type. Agents of other types stay registered, but no call of the tool reaches them any more. */
export async function setToolOwner(
  tx: Tx,
  author: Author,
  { tool, agent_types }: { tool: string; agent_types: string[] | null },
): Promise<void> {
  const { tenant_id, principal } = author;
  const [before = null] = await tx.query(`${OWNERS} AND tool = $2 FOR UPDATE`, [tenant_id, tool]);
  if (agent_types) await tx.query(SET, [tenant_id, tool, agent_types, principal.id]);
  else await tx.query('DELETE FROM tool_owners WHERE tenant_id = $1 AND tool = $2', [tenant_id, tool]);
  const after = agent_types && { tool, agent_types };
  await recordAudit(tx, author, { action: 'tool_owner.set', target: { type: 'tool', id: tool }, before, after });
}
