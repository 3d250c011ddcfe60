import { jsonProblem, makeWellFormed } from '../contracts/json-guard.js';
import { LIMITS } from '../contracts/limits.js';
import { type Outbound, OutboundError } from '../http/outbound.js';
import { PlatformError } from '../runtime/errors.js';

const WELL_KNOWN = '/.well-known/agent-card.json';
const TIMEOUT_MS = 10_000;

/** Where a card may be: below the agent's own address, then at the root of its origin. */
function cardUrls(publicUrl: string): string[] {
  const url = new URL(publicUrl);
  const below = `${url.origin}${url.pathname.replace(/\/+$/, '')}${WELL_KNOWN}`;
  return [...new Set([below, `${url.origin}${WELL_KNOWN}`])];
}

/** A card in an answer; null where there is none. */
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
 * @throws PlatformError `BAD_REQUEST` for an address that may not be reached, `BAD_GATEWAY` when no card is found
 */
export async function fetchAgentCard(
  outbound: Pick<Outbound, 'request' | 'checkUrl'>,
  publicUrl: string,
): Promise<Record<string, unknown>> {
  checkPublicUrl(outbound, publicUrl);
  let why = 'there is no agent card';
  for (const url of cardUrls(publicUrl)) {
    try {
      const headers = { accept: 'application/json' };
      const response = await outbound.request(url, {
        headers,
        timeoutMs: TIMEOUT_MS,
        maxResponseBytes: LIMITS.cardBytes,
      });
      const card = readCard(response);
      if (card) return card;
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      why = error.message;
    }
  }
  throw new PlatformError('BAD_GATEWAY', `The agent card could not be fetched from the agent's address: ${why}.`);
}

/** @throws PlatformError `BAD_REQUEST` for a URL with credentials, or with a literal address that may not be reached */
export function checkPublicUrl(outbound: Pick<Outbound, 'checkUrl'>, publicUrl: string): void {
  try {
    outbound.checkUrl(publicUrl);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    throw new PlatformError('BAD_REQUEST', `public_url: ${error.message}.`);
  }
}
