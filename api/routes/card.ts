import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { A2aVersion } from '../../contracts/a2a/a2a.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { agentCard, type CardDeps, fleetOf } from '../agent-card.js';
import { namedVersion } from '../send/rpc.js';

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

function latest(one: Date, other: Date | null | undefined): Date {
  return other && other > one ? other : one;
}

/** The agent card (a2a.md). With a token it lists the skills of the caller's fleet. */
export function cardRoutes(app: FastifyInstance, deps: CardDeps): void {
  const startedAt = new Date();
  const { path, access, agents } = OPERATIONS.agentCard;

  app.get(path, { config: { access, agents } }, async (request, reply) => {
    const fleet = request.caller ? await fleetOf(deps, request.caller) : null;
    const body = JSON.stringify(agentCard(deps, cardVersion(namedVersion(request)), fleet));
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
    reply.headers({
      etag,
      'cache-control': `${fleet ? 'private' : 'public'}, max-age=${MAX_AGE_SECONDS}`,
      'last-modified': latest(startedAt, fleet?.changed_at).toUTCString(),
      vary: 'A2A-Version, Authorization',
    });
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(body);
  });
}
