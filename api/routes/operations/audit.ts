import type { FastifyInstance } from 'fastify';
import { listAudit, streamAudit } from '../../../audit/audit-list.js';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { AuditEntry } from '../../../contracts/api/tenants/audit.js';
import type { ApiDeps } from '../../deps.js';
import type { JsonLines } from '../../json-lines.js';
import { parseBody, routeConfig } from '../../mount.js';
import { callerOf } from '../../plugins/authentication.js';

/** The audit, scope `admin`. */
export function auditRoutes(
  app: FastifyInstance,
  deps: Pick<ApiDeps, 'db' | 'secrets'> & { jsonLines: JsonLines },
): void {
  const operation = OPERATIONS.getAudit;
  app.post(operation.path, { config: routeConfig(operation) }, async (request, reply) => {
    const body = parseBody(operation.request, request.body);
    const caller = callerOf(request);
    if (body.format === 'json') {
      reply.header('cache-control', 'no-store');
      return operation.response.parse({ ok: true, ...(await listAudit(deps, caller, body)) });
    }
    return deps.jsonLines.answer(request, reply, AuditEntry, streamAudit(deps, caller, body));
  });
}
