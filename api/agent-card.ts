/** A skill as an A2A 0.3 card must name it. */
interface CardSkill {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
}

/** What a card says to those who bring no token: nothing of any tenant's. */
const PLATFORM_SKILL: CardSkill = {
  id: 'fleet.route',
  name: 'Route to the fleet',
  description:
    "Takes a message and routes it to an agent of the caller's fleet, by agent type, instance or skill, or to the least loaded one.",
  tags: ['fleet', 'routing', 'orchestration'],
};
const MEDIA_TYPES = ['text/plain', 'application/json'];

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** An agent's own words for a skill, completed where it left out what a card must have. */
function toCardSkill(skill: Record<string, unknown>): CardSkill {
  const id = String(skill.id);
  const name = text(skill.name) ?? id;
  const examples = texts(skill.examples);
  const description = text(skill.description) ?? name;
  return { id, name, description, tags: texts(skill.tags), ...(examples.length > 0 && { examples }) };
}

/**
 * The platform's A2A 0.3 agent card, with `supportedInterfaces` beside it (a2a.md).
 * @param options.fleet the skills of the caller's agents; null for a caller without a token
 */
export function buildAgentCard(options: { baseUrl: string; version: string; fleet: Record<string, unknown>[] | null }) {
  const url = `${options.baseUrl}/send`;
  return {
    protocolVersion: '0.3.0',
    name: 'Agent Fleet Platform',
    description: 'Routes messages to a fleet of agents and keeps every one of them until it is answered.',
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }],
    version: options.version,
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: false },
    defaultInputModes: MEDIA_TYPES,
    defaultOutputModes: MEDIA_TYPES,
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A token from POST /auth/get_token' },
    },
    security: [{ bearer: [] }],
    supportsAuthenticatedExtendedCard: false,
    skills: options.fleet && options.fleet.length > 0 ? options.fleet.map(toCardSkill) : [PLATFORM_SKILL],
  };
}
