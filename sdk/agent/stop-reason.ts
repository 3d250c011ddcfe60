import { CLOSE_CODES } from '../../contracts/errors.js';
import { ApiError } from '../client/errors.js';
import { AgentStoppedError } from './agent-error.js';
import type { ConnectionEnd } from '../connected/mesh-connection.js';
import { troubleOfError } from './describe-error.js';

/** Refusals that repeating does not change. A 401 is one only for the credential itself. */
const FINAL_STATUSES = [400, 403, 405, 409, 426];

const REPLACED = 'another process connected with the same instance_id and took its place (REPLACED)';
const DEREGISTERED = 'the agent was deregistered (DEREGISTERED); start it again to register it anew';

/** Why the agent must stop for good after this end of a connection; null where it should come back. */
export function stopReason({ closeCode, code, httpStatus, message }: ConnectionEnd): AgentStoppedError | null {
  if (closeCode === CLOSE_CODES.REPLACED || code === 'REPLACED') return new AgentStoppedError('REPLACED', REPLACED);
  if (closeCode === CLOSE_CODES.DEREGISTERED || code === 'DEREGISTERED') return deregistered();
  const isFinal = httpStatus !== undefined && FINAL_STATUSES.includes(httpStatus);
  return isFinal ? new AgentStoppedError(code, `the mesh refused the agent: ${message}`) : null;
}

function deregistered(): AgentStoppedError {
  return new AgentStoppedError('DEREGISTERED', DEREGISTERED);
}

/**
 * As `stopReason`, for a registration or a token that failed.
 * @param options `url` is the API's; an agent that `hasJoined` takes a 404 for a proxy's, which passes
 */
export function stopReasonOfError(
  error: unknown,
  options: { url: string; hasJoined: boolean },
): AgentStoppedError | null {
  if (error instanceof AgentStoppedError) return error;
  if (!(error instanceof ApiError)) return null;
  if (error.code === 'DEREGISTERED') return new AgentStoppedError('DEREGISTERED', DEREGISTERED, { cause: error });
  const isFinal = FINAL_STATUSES.includes(error.status) || error.status === 401;
  if (!isFinal && (options.hasJoined || error.status !== 404)) return null;
  const { code, message } = troubleOfError(error, options.url);
  return new AgentStoppedError(code, message, { cause: error });
}
