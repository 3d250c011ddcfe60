import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type FleetSkills, listSkills } from '../../agents/agent-card.js';
import type { A2aVersion } from '../../contracts/a2a/a2a.js';
import type { AgentCard03, AgentCard10, CardSkill } from '../../contracts/a2a/agent-card.js';
import type { Caller } from '../../contracts/api/auth.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { ApiDeps } from '../deps.js';
import { namedVersion } from '../send/rpc.js';

type CardDeps = Pick<ApiDeps, 'db' | 'baseUrl' | 'version'>;

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
const JSONRPC = 'JSONRPC' as const;
/** The versions of A2A that `/send` accepts, the preferred one first. */
const INTERFACES = ['1.0', '0.3'].map((protocolVersion) => ({ protocolBinding: JSONRPC, protocolVersion }));
const BEARER = { scheme: 'bearer', bearerFormat: 'JWT', description: 'From POST /auth/get_token' };

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** A skill as its agent declares it, with defaults for the members that a card requires. */
function toCardSkill(skill: Record<string, unknown>): CardSkill {
  const id = String(skill.id);
  const name = text(skill.name) ?? id;
  const description = text(skill.description) ?? name;
  const lists = ['examples', 'inputModes', 'outputModes'].map((member) => [member, texts(skill[member])] as const);
  const given = Object.fromEntries(lists.filter(([, list]) => list.length > 0));
  return { id, name, description, tags: texts(skill.tags), ...given };
}

/** The members that are equal in both versions. */
function commonFields(url: string, version: string, fleet: FleetSkills | null) {
  return {
    name: 'Agent Fleet Platform',
    description: 'Routes messages to a fleet of agents and keeps every one of them until it is answered.',
    version,
    supportedInterfaces: INTERFACES.map((each) => ({ url, ...each })),
    defaultInputModes: MEDIA_TYPES,
    defaultOutputModes: MEDIA_TYPES,
    skills: fleet && fleet.skills.length > 0 ? fleet.skills.map(toCardSkill) : [PLATFORM_SKILL],
  };
}

/** The platform's agent card (a2a.md), with the skills of the caller's agents; null for a caller without a token. */
export function agentCard(deps: CardDeps, version: A2aVersion, fleet: FleetSkills | null): AgentCard03 | AgentCard10 {
  const url = `${deps.baseUrl()}/send`;
  const common = commonFields(url, deps.version, fleet);
  if (version === '1.0') {
    return {
      ...common,
      capabilities: { ...CAPABILITIES, extendedAgentCard: true },
      securitySchemes: { bearer: { httpAuthSecurityScheme: BEARER } },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    };
  }
  return {
    protocolVersion: '0.3.0',
    ...common,
    url,
    preferredTransport: JSONRPC,
    additionalInterfaces: [{ url, transport: JSONRPC }],
    capabilities: { ...CAPABILITIES, stateTransitionHistory: false },
    securitySchemes: { bearer: { type: 'http', ...BEARER } },
    security: [{ bearer: [] }],
    supportsAuthenticatedExtendedCard: true,
  };
}

/** The skills of the agents of the caller's tenant. */
export function fleetOf({ db }: CardDeps, { tenant_id }: Caller): Promise<FleetSkills> {
  return db.tenant(tenant_id, (tx) => listSkills(tx, tenant_id));
}

const MAX_AGE_SECONDS = 60;

/** Callers that name no version, or another than 1.x, get the card of 0.3, which names all versions. */
function cardVersion(named: string): A2aVersion {
  return /^1\.\d+(?:\.\d+)?$/.test(named) ? '1.0' : '0.3';
}

/** Whether `If-None-Match` names the entity tag (RFC 9110, 13.1.2). */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

/** The agent card (a2a.md). With a token it lists the skills of the caller's fleet. */
export function cardRoutes(app: FastifyInstance, deps: CardDeps): void {
  const startedMs = Date.now();
  const { path, access, agents } = OPERATIONS.agentCard;

  app.get(path, { config: { access, agents } }, async (request, reply) => {
    const fleet = request.caller ? await fleetOf(deps, request.caller) : null;
    const body = JSON.stringify(agentCard(deps, cardVersion(namedVersion(request)), fleet));
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
    reply.headers({
      etag,
      'cache-control': `${fleet ? 'private' : 'public'}, max-age=${MAX_AGE_SECONDS}`,
      'last-modified': new Date(Math.max(startedMs, fleet?.changed_at?.getTime() ?? 0)).toUTCString(),
      vary: 'A2A-Version, Authorization',
    });
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(body);
  });
}
