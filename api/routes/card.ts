import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/operations.js';
import { listSkills } from '../../db/skills.js';
import { buildAgentCard } from '../agent-card.js';
import type { ApiDeps } from '../deps.js';

const MAX_AGE_SECONDS = 60;

/** The agent card (a2a.md): public without a token; with one, the skills of the caller's fleet. */
export function cardRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db' | 'baseUrl' | 'version'>): void {
  const startedAt = new Date();
  const { path, access } = OPERATIONS.agentCard;

  app.get(path, { config: { access } }, async (request, reply) => {
    const tenantId = request.caller?.tenant_id;
    const fleet = tenantId === undefined ? null : await deps.db.tenant(tenantId, (tx) => listSkills(tx, tenantId));
    const card = buildAgentCard({ baseUrl: deps.baseUrl(), version: deps.version, fleet: fleet?.skills ?? null });
    const body = JSON.stringify(card);
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
    reply.headers({
      etag,
      'cache-control': `${fleet ? 'private' : 'public'}, max-age=${MAX_AGE_SECONDS}`,
      'last-modified': (fleet?.changed_at ?? startedAt).toUTCString(),
      vary: 'A2A-Version, Authorization',
    });
    const known = (request.headers['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
    if (known.includes(etag) || known.includes('*')) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(body);
  });
}
