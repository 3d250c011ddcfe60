import { jsonProblem, makeWellFormed } from '../contracts/json-guard.js';
import { LIMITS } from '../contracts/limits.js';
import type { Tx } from '../db/pool.js';
import { type Outbound, OutboundError } from '../http/outbound.js';
import { PlatformError } from '../runtime/errors.js';

const WELL_KNOWN = '/.well-known/agent-card.json';
const TIMEOUT_MS = 10_000;

/** The URLs to try for a card: below the agent's URL, then at the root of its origin. */
function cardUrls(publicUrl: string): string[] {
  const url = new URL(publicUrl);
  const below = `${url.origin}${url.pathname.replace(/\/+$/, '')}${WELL_KNOWN}`;
  return [...new Set([below, `${url.origin}${WELL_KNOWN}`])];
}

/** Parses the card in a response; null if it is not a usable card. */
function readCard(response: { status: number; body: Buffer; truncated: boolean }): Record<string, unknown> | null {
  if (response.status !== 200 || response.truncated) return null;
  try {
    const card: unknown = JSON.parse(response.body.toString('utf8'));
    const isCard = typeof card === 'object' && card !== null && 'name' in card && typeof card.name === 'string';
    if (!isCard || jsonProblem(card) !== undefined) return null;
    makeWellFormed(card);
    return { ...card };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * Fetches an agent's card: a JSON object with a name, at most 64 KiB.
 * @throws PlatformError `BAD_REQUEST` for a forbidden address, `BAD_GATEWAY` when no card is found
 */
export async function fetchAgentCard(
  outbound: Pick<Outbound, 'request' | 'checkUrl'>,
  publicUrl: string,
): Promise<Record<string, unknown>> {
  checkOutboundUrl(outbound, 'public_url', publicUrl);
  const urls = cardUrls(publicUrl);
  let problem = `there is no agent card at ${urls.join(' or ')}`;
  for (const url of urls) {
    try {
      const headers = { accept: 'application/json' };
      const options = { headers, timeoutMs: TIMEOUT_MS, maxResponseBytes: LIMITS.cardBytes };
      const card = readCard(await outbound.request(url, options));
      if (card) return card;
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      problem = error.message;
    }
  }
  throw new PlatformError('BAD_GATEWAY', `The agent card could not be fetched from the agent's address: ${problem}.`);
}

/** The addresses that a card names for JSON-RPC, of A2A 1.0 and 0.3. Anything may be in it. */
function rpcUrls({
  supportedInterfaces,
  additionalInterfaces,
  url,
  preferredTransport,
}: Record<string, unknown>): URL[] {
  const listed = [supportedInterfaces, additionalInterfaces].flatMap((list) => (Array.isArray(list) ? list : []));
  const interfaces: ({ url?: unknown; protocolBinding?: unknown; transport?: unknown } | null)[] = [
    ...listed,
    { url, transport: preferredTransport },
  ];
  return interfaces
    .filter((one) => (one?.protocolBinding ?? one?.transport ?? 'JSONRPC') === 'JSONRPC')
    .flatMap((one) => (typeof one?.url === 'string' && URL.canParse(one.url) ? [new URL(one.url)] : []));
}

/**
 * The URL at which an agent takes its calls: its registered URL, unless its card names only other paths; then the first of these on the
 * registered origin. No other origin is called, because nobody has registered it.
 * @returns null if the card names only other paths on other origins. The same path on another origin is the registered URL: behind a proxy, an
 * agent may not know its own origin
 */
export function rpcAddress(publicUrl: string, card: Record<string, unknown>): string | null {
  const registered = new URL(publicUrl);
  const path = ({ pathname }: URL) => pathname.replace(/\/+$/, '');
  const named = rpcUrls(card);
  if (named.length === 0 || named.some((one) => path(one) === path(registered))) return publicUrl;
  return named.find(({ origin }) => origin === registered.origin)?.href ?? null;
}

/**
 * Checks the card that an agent serves itself.
 * @throws PlatformError `BAD_REQUEST` where it says that the calls go to another origin
 */
export function requireOwnRpcAddress(publicUrl: string, card: Record<string, unknown>): void {
  if (rpcAddress(publicUrl, card) !== null) return;
  const [named] = rpcUrls(card);
  throw new PlatformError(
    'BAD_REQUEST',
    `public_url: the agent card names ${named?.href.slice(0, 512)} for JSON-RPC, which is of another origin. Register that address, or correct the card.`,
  );
}

/** @throws PlatformError `BAD_REQUEST`, naming the member, for a URL that contains credentials or a forbidden IP address */
export function checkOutboundUrl(outbound: Pick<Outbound, 'checkUrl'>, member: string, url: string): void {
  try {
    outbound.checkUrl(url);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    // Only the host is shown: a refused URL may contain a password.
    const remedy =
      error.code === 'FORBIDDEN_ADDRESS'
        ? ` (${new URL(url).host}): OUTBOUND_ALLOW_CIDRS of the platform opens private addresses`
        : '';
    throw new PlatformError('BAD_REQUEST', `${member}: ${error.message}${remedy}.`);
  }
}

/** Limits of the skills on a fleet's card; beyond either, the card lists the first by id. */
const SKILLS_MAX = 500;
const SKILLS_BYTES_MAX = 1024 * 1024;

/** The skills that a fleet's agents declare, one entry per id, and when registrations last changed. */
export interface FleetSkills {
  skills: Record<string, unknown>[];
  changed_at: Date | null;
}

/** Selects only the members that a card has; agents may add any others. */
const SKILLS = `
  WITH own AS (
    SELECT DISTINCT ON (skill ->> 'id') skill ->> 'id' AS id,
      jsonb_build_object('id', skill -> 'id', 'name', skill -> 'name', 'description', skill -> 'description',
        'tags', skill -> 'tags', 'examples', skill -> 'examples', 'inputModes', skill -> 'inputModes',
        'outputModes', skill -> 'outputModes') AS skill
      FROM agents a
      CROSS JOIN LATERAL jsonb_array_elements(a.skills ||
        CASE WHEN jsonb_typeof(a.agent_card -> 'skills') = 'array' THEN a.agent_card -> 'skills' ELSE '[]' END) skill
     WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL AND ($2::text IS NULL OR a.agent_type = $2)
       AND jsonb_typeof(skill -> 'id') = 'string' AND skill ->> 'id' <> ''
     ORDER BY skill ->> 'id', a.instance_id
     LIMIT ${SKILLS_MAX}),
  measured AS (SELECT id, skill, sum(octet_length(skill::text)) OVER (ORDER BY id) AS bytes FROM own)
  SELECT coalesce(jsonb_agg(skill ORDER BY id) FILTER (WHERE bytes <= ${SKILLS_BYTES_MAX}), '[]') AS skills,
         (SELECT max(greatest(registered_at, deregistered_at)) FROM agents
           WHERE tenant_id = $1 AND ($2::text IS NULL OR agent_type = $2)) AS changed_at
    FROM measured`;

/** Lists the skills of a tenant's registered agents, from their registrations and their cards. @param agentType null for all types */
export async function listSkills(tx: Tx, tenantId: string, agentType: string | null = null): Promise<FleetSkills> {
  const [fleet] = await tx.query<FleetSkills>(SKILLS, [tenantId, agentType]);
  return fleet ?? { skills: [], changed_at: null };
}
