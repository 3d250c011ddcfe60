import type { Caller } from '../contracts/api/auth.js';
import type { ResolveManyRequest, ResolveManyResponse } from '../contracts/api/policies/requests.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db } from '../db/pool.js';
import type { RequestSubject } from '../messages/input/callback-tokens.js';
import { byCaller, type Identify } from '../messages/input/identify.js';
import type { DecisionRequest, Resolved } from '../messages/input/resolve.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** What deciding many requests takes. `decideAs`: decides about one, be it of a message or a plan. */
export interface ResolveManyDeps {
  db: Db;
  log: Pick<Logger, 'error'>;
  decideAs(subject: RequestSubject, body: DecisionRequest, identify: Identify): Promise<Resolved>;
}

type Result = ResolveManyResponse['results'][number];

const SUBJECTS =
  'SELECT request_id, message_id, plan_id FROM input_requests WHERE tenant_id = $1 AND request_id = ANY ($2)';
type Subject = { request_id: string } & Pick<RequestSubject, 'message_id' | 'plan_id'>;

/**
 * Decides about requests one after the other, each as `/messages/{id}/resolve` does, so that one that is refused stops no other. What does not
 * fit into the time is left undecided and says so.
 * @param ip the network address of the caller
 */
export async function resolveMany(
  { db, log, decideAs }: ResolveManyDeps,
  caller: Caller,
  { request_ids, ...body }: ResolveManyRequest,
  ip?: string,
): Promise<Result[]> {
  const { tenant_id } = caller;
  const endsAtMs = performance.now() + LIMITS.resolveManyMs;
  const rows = await db.tenant(tenant_id, (tx) => tx.query<Subject>(SUBJECTS, [tenant_id, request_ids]));
  const subjects = new Map(rows.map((row) => [row.request_id, row]));
  const decide = async (request_id: string): Promise<Result> => {
    const subject = subjects.get(request_id);
    if (!subject) return { request_id, ok: false, code: 'NOT_FOUND' };
    if (performance.now() > endsAtMs) return { request_id, ok: false, code: 'REQUEST_TIMEOUT' };
    try {
      await decideAs({ tenant_id, ...subject } as RequestSubject, { ...body, request_id }, byCaller(caller, ip));
      return { request_id, ok: true };
    } catch (error) {
      if (error instanceof PlatformError) return { request_id, ok: false, code: error.code };
      log.error({ err: errorMessage(error), input_request_id: request_id }, 'a request could not be decided');
      return { request_id, ok: false, code: 'INTERNAL_ERROR' };
    }
  };
  const results: Result[] = [];
  for (const request_id of request_ids) results.push(await decide(request_id));
  return results;
}
