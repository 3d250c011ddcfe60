import { CLOSE_CODES } from '../../contracts/errors.js';
import { ApiError } from '../client/errors.js';
import { AgentStoppedError } from './agent-options.js';
import type { ConnectionEnd } from './mesh-connection.js';

/** Refusals that repeating does not change. A 401 is one only for the credential itself. */
const FINAL_STATUSES = [400, 403, 405, 409, 426];

/** Why the agent must stop for good after this end of a connection; null where it should come back. */
export function stopReason(end: ConnectionEnd): AgentStoppedError | null {
  if (end.closeCode === CLOSE_CODES.REPLACED) {
    return new AgentStoppedError('REPLACED', 'another process connected with the same instance_id and took its place');
  }
  const isFinal = end.httpStatus !== undefined && FINAL_STATUSES.includes(end.httpStatus);
  return isFinal ? new AgentStoppedError(end.code, `the mesh refused the agent: ${end.message}`) : null;
}

/** As `stopReason`, for a registration or a token that failed. */
export function stopReasonOfError(error: unknown): AgentStoppedError | null {
  if (error instanceof AgentStoppedError) return error;
  if (!(error instanceof ApiError)) return null;
  const isFinal = FINAL_STATUSES.includes(error.status) || error.status === 401;
  return isFinal ? new AgentStoppedError(error.code, `the platform refused the agent: ${error.message}`) : null;
}
