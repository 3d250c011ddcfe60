import { type FleetSkills, listSkills } from '../agents/agent-card.js';
import type { A2aVersion } from '../contracts/a2a/a2a.js';
import type { AgentCard03, AgentCard10, CardSkill } from '../contracts/a2a/agent-card.js';
import type { TokenClaims } from '../contracts/api/auth.js';
import type { ApiDeps } from './deps.js';

/** What the cards need from the platform. */
export type CardDeps = Pick<ApiDeps, 'db' | 'baseUrl' | 'version'>;

type Caller = Pick<TokenClaims, 'tenant_id'>;

/** The one skill of the public card, which shows nothing of any tenant. */
const PLATFORM_SKILL: CardSkill = {
  id: 'fleet.route',
  name: 'Route to the fleet',
  description:
    "Takes a message and routes it to an agent of the caller's fleet, by agent type, instance or skill, or to the least loaded one.",
  tags: ['fleet', 'routing', 'orchestration'],
};
const MEDIA_TYPES = ['text/plain', 'application/json'];
const CAPABILITIES = { streaming: true, pushNotifications: true };
/** Versions of A2A that `/send` accepts, the preferred one first. */
const PROTOCOL_VERSIONS = ['1.0', '0.3'];
const BEARER = { scheme: 'bearer', bearerFormat: 'JWT', description: 'From POST /auth/get_token' };

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** Those of the named members that are lists with content. */
function nonEmptyLists(skill: Record<string, unknown>, names: ('examples' | 'inputModes' | 'outputModes')[]) {
  const lists = names.map((name) => [name, texts(skill[name])] as const);
  return Object.fromEntries(lists.filter(([, list]) => list.length > 0));
}

/** A skill as its agent declares it, with defaults for the members that a card requires. */
function toCardSkill(skill: Record<string, unknown>): CardSkill {
  const id = String(skill.id);
  const name = text(skill.name) ?? id;
  const description = text(skill.description) ?? name;
  return {
    id,
    name,
    description,
    tags: texts(skill.tags),
    ...nonEmptyLists(skill, ['examples', 'inputModes', 'outputModes']),
  };
}

/** The members that are equal in both versions. */
function commonFields({ baseUrl, version }: CardDeps, fleet: FleetSkills | null) {
  const url = `${baseUrl()}/send`;
  return {
    name: 'Agent Fleet Platform',
    description: 'Routes messages to a fleet of agents and keeps every one of them until it is answered.',
    version,
    supportedInterfaces: PROTOCOL_VERSIONS.map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC' as const,
      protocolVersion,
    })),
    defaultInputModes: MEDIA_TYPES,
    defaultOutputModes: MEDIA_TYPES,
    skills: fleet && fleet.skills.length > 0 ? fleet.skills.map(toCardSkill) : [PLATFORM_SKILL],
  };
}

function card03(deps: CardDeps, fleet: FleetSkills | null): AgentCard03 {
  const url = `${deps.baseUrl()}/send`;
  return {
    protocolVersion: '0.3.0',
    ...commonFields(deps, fleet),
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    capabilities: { ...CAPABILITIES, stateTransitionHistory: false },
    securitySchemes: { bearer: { type: 'http', ...BEARER } },
    security: [{ bearer: [] }],
    supportsAuthenticatedExtendedCard: true,
  };
}

function card10(deps: CardDeps, fleet: FleetSkills | null): AgentCard10 {
  return {
    ...commonFields(deps, fleet),
    capabilities: { ...CAPABILITIES, extendedAgentCard: true },
    securitySchemes: { bearer: { httpAuthSecurityScheme: BEARER } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
  };
}

/**
 * The platform's agent card (a2a.md).
 * @param fleet the skills of the caller's agents; null for a caller without a token
 */
export function agentCard(deps: CardDeps, version: A2aVersion, fleet: FleetSkills | null): AgentCard03 | AgentCard10 {
  return version === '1.0' ? card10(deps, fleet) : card03(deps, fleet);
}

/** The skills of the agents of the caller's tenant. */
export function fleetOf({ db }: CardDeps, { tenant_id }: Caller): Promise<FleetSkills> {
  return db.tenant(tenant_id, (tx) => listSkills(tx, tenant_id));
}

/**
 * The answer to `agent/getAuthenticatedExtendedCard` (0.3) and `GetExtendedAgentCard` (1.0): the card with the skills of the caller's
 * fleet.
 */
export async function extendedCard(
  deps: CardDeps,
  caller: Caller,
  version: A2aVersion,
): Promise<AgentCard03 | AgentCard10> {
  return agentCard(deps, version, await fleetOf(deps, caller));
}
