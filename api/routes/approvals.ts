import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { ExportedApproval } from '../../contracts/api/policies/approvals.js';
import { exportApprovals, getApprovals } from '../../messages/input/audit.js';
import { getHeldOutput } from '../../messages/input/held-output.js';
import type { ApiDeps } from '../deps.js';
import type { JsonLines } from '../json-lines.js';
import { mount, parseBody, routeConfig } from '../mount.js';
import { callerOf } from '../plugins/authentication.js';

/** The audit trail of decisions, and output that waits for one. */
export function approvalRoutes(
  app: FastifyInstance,
  { db, jsonLines }: Pick<ApiDeps, 'db'> & { jsonLines: JsonLines },
): void {
  mount(app, OPERATIONS.getApprovals).answer(async ({ message_id, plan_id = '' }, { caller }) => {
    const approvals =
      message_id === undefined
        ? await getApprovals(db, caller, 'plan', plan_id)
        : await getApprovals(db, caller, 'message', message_id);
    return { ok: true, approvals };
  });

  mount(app, OPERATIONS.getHeldOutput).answer(async ({ message_id }, { caller }) => {
    const { held_output: output, ...request } = await getHeldOutput(db, caller.tenant_id, message_id);
    return { ok: true, ...request, output };
  });

  const operation = OPERATIONS.exportApprovals;
  app.post(operation.path, { config: routeConfig(operation) }, (request, reply) => {
    const range = parseBody(operation.request, request.body);
    const approvals = exportApprovals(db, callerOf(request).tenant_id, range);
    return jsonLines.answer(request, reply, ExportedApproval, approvals);
  });
}
