import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { listAudit, streamAudit } from '../../../audit/audit-list.js';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { AuditEntry } from '../../../contracts/api/tenants/audit.js';
import type { ApiDeps } from '../../deps.js';
import { parseBody, routeConfig } from '../../mount.js';
import { callerOf } from '../../plugins/authentication.js';

/** The audit, scope `admin`. */
export function auditRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db' | 'secrets'>): void {
  const operation = OPERATIONS.getAudit;
  app.post(operation.path, { config: routeConfig(operation) }, async (request, reply) => {
    const body = parseBody(operation.request, request.body);
    const caller = callerOf(request);
    reply.header('cache-control', 'no-store');
    if (body.format === 'json') {
      return operation.response.parse({ ok: true, ...(await listAudit(deps, caller, body)) });
    }
    const entries = streamAudit(deps, caller, body);
    const lines = async function* () {
      for await (const entry of entries) yield `${JSON.stringify(AuditEntry.parse(entry))}\n`;
    };
    return reply.type('application/jsonl').send(Readable.from(lines()));
  });
}
