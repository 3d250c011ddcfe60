import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { listSkills } from '../../agents/agent-card.js';
import { describeType } from '../../agents/agent-type-card.js';
import type { A2aVersion } from '../../contracts/a2a/a2a.js';
import type { AgentCard03, AgentCard10, CardSkill } from '../../contracts/a2a/agent-card.js';
import type { Caller } from '../../contracts/api/auth.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { AgentType } from '../../contracts/primitives.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { routeConfig } from '../mount.js';
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
/** The skill of agents that declare none: they take messages. */
const messageSkill = (agentType: string): CardSkill => ({
  id: agentType,
  name: agentType,
  description: `Takes messages for agents of the type ${agentType}.`,
  tags: ['message'],
});
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

/** What a card describes: the whole fleet, or the agents of one type. */
interface CardSubject {
  /** The address of its interfaces. */
  url: string;
  name: string;
  description: string;
  version: string;
  skills: Record<string, unknown>[];
  inputModes?: string[];
  outputModes?: string[];
  provider?: { organization: string; url: string };
  documentationUrl?: string;
  iconUrl?: string;
}

/** The members that are equal in both versions. */
function commonFields({ url, skills, inputModes = [], outputModes = [], ...named }: CardSubject) {
  return {
    ...named,
    supportedInterfaces: INTERFACES.map((each) => ({ url, ...each })),
    defaultInputModes: inputModes.length > 0 ? inputModes : MEDIA_TYPES,
    defaultOutputModes: outputModes.length > 0 ? outputModes : MEDIA_TYPES,
    skills: skills.length > 0 ? skills.map(toCardSkill) : [PLATFORM_SKILL],
  };
}

function agentCard(subject: CardSubject, version: A2aVersion): AgentCard03 | AgentCard10 {
  const { url } = subject;
  const common = commonFields(subject);
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

interface Card {
  card: AgentCard03 | AgentCard10;
  changedAt: Date | null;
}

/** The members of a card that its agents may leave out. */
function given<Member>(name: string, value: Member | null): Record<string, Member> {
  return value === null ? {} : { [name]: value };
}

/**
 * The agent card of the caller's fleet, or of its agents of a type. A caller without a token (null) gets a card that shows nothing of any tenant.
 * @throws PlatformError NOT_FOUND when no agent of the type is registered
 */
export async function cardOf(
  deps: CardDeps,
  version: A2aVersion,
  caller: Caller | null,
  agentType: string | null,
): Promise<Card> {
  const { db } = deps;
  const fleet: CardSubject = {
    url: `${deps.baseUrl()}${agentType === null ? '/send' : `/a2a/${encodeURIComponent(agentType)}`}`,
    name: 'Agent Fleet Platform',
    description: 'Routes messages to a fleet of agents and keeps every one of them until it is answered.',
    version: deps.version,
    skills: [],
  };
  if (caller === null) return { card: agentCard(fleet, version), changedAt: null };
  const { tenant_id } = caller;
  if (agentType === null) {
    const { skills, changed_at } = await db.tenant(tenant_id, (tx) => listSkills(tx, tenant_id));
    return { card: agentCard({ ...fleet, skills }, version), changedAt: changed_at };
  }
  const type = await db.tenant(tenant_id, (tx) => describeType(tx, tenant_id, agentType));
  if (!type) throw new PlatformError('NOT_FOUND', 'No agent of this type is registered.');
  const { provider_organization: organization, provider_url: url } = type;
  const subject: CardSubject = {
    url: fleet.url,
    name: type.name ?? agentType,
    description: type.description ?? `Agents of the type ${agentType}.`,
    version: type.version ?? deps.version,
    skills: type.skills.length > 0 ? type.skills : [messageSkill(agentType)],
    inputModes: type.input_modes,
    outputModes: type.output_modes,
    ...given('documentationUrl', type.documentation_url),
    ...given('iconUrl', type.icon_url),
    ...(organization !== null && url !== null && { provider: { organization, url } }),
  };
  return { card: agentCard(subject, version), changedAt: type.changed_at };
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

/** The agent cards of the platform and of each agent type. With a token they list the skills of the caller's agents. */
export function cardRoutes(app: FastifyInstance, deps: CardDeps): void {
  const startedMs = Date.now();

  const send = async (
    request: FastifyRequest,
    reply: FastifyReply,
    agentType: string | null,
  ): Promise<FastifyReply> => {
    if (agentType !== null && !AgentType.safeParse(agentType).success)
      throw new PlatformError('NOT_FOUND', 'No agent type has such a name.');
    const types = request.caller?.agent_types_allowed;
    if (agentType !== null && types && !types.includes(agentType))
      throw new PlatformError('NOT_FOUND', 'No agent of this type is registered.');
    const { card, changedAt } = await cardOf(deps, cardVersion(namedVersion(request)), request.caller, agentType);
    const body = JSON.stringify(card);
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
    reply.headers({
      etag,
      'cache-control': `${request.caller ? 'private' : 'public'}, max-age=${MAX_AGE_SECONDS}`,
      'last-modified': new Date(Math.max(startedMs, changedAt?.getTime() ?? 0)).toUTCString(),
      vary: 'A2A-Version, Authorization',
    });
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(body);
  };

  const { agentCard: ofFleet, agentTypeCard: ofType } = OPERATIONS;
  app.get(ofFleet.path, { config: routeConfig(ofFleet) }, (request, reply) => send(request, reply, null));
  app.get<{ Params: { agent_type: string } }>(ofType.path, { config: routeConfig(ofType) }, (request, reply) =>
    send(request, reply, request.params.agent_type),
  );
}
