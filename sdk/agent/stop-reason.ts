import { CLOSE_CODES } from '../../contracts/errors.js';
import { ApiError } from '../client/api/errors.js';
import type { ConnectionEnd } from '../connected/mesh-connection.js';
import { AgentStoppedError } from './agent-error.js';
import { describeError } from './describe-error.js';

/** Statuses that a retry does not change. A 401 is final only for the credential itself: a token is renewed. */
const FINAL_STATUSES = [400, 403, 405, 409, 426];

const REPLACED = 'another process connected with the same instance_id and took its place (REPLACED)';
const DEREGISTERED = 'the agent was deregistered (DEREGISTERED); start it again to register it anew';

/** The reason to stop permanently after this end of a connection; null when the agent should reconnect. */
export function stopReason({ closeCode, code, httpStatus, message }: ConnectionEnd): AgentStoppedError | null {
  if (closeCode === CLOSE_CODES.REPLACED || code === 'REPLACED') return new AgentStoppedError('REPLACED', REPLACED);
  if (closeCode === CLOSE_CODES.DEREGISTERED || code === 'DEREGISTERED')
    return new AgentStoppedError('DEREGISTERED', DEREGISTERED);
  if (closeCode === CLOSE_CODES.POLICY_DENIED)
    return new AgentStoppedError('POLICY_DENIED', `a policy denies the agent: ${message}`);
  const isFinal = httpStatus !== undefined && FINAL_STATUSES.includes(httpStatus);
  return isFinal ? new AgentStoppedError(code, `the mesh refused the agent: ${message}`) : null;
}

/**
 * Like `stopReason`, for a failed registration or token request.
 * @param options `url` is the API's; after the first registration (`hasJoined`) a 404 counts as a temporary answer of a proxy
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
  const { code, message } = describeError(error, options.url);
  return new AgentStoppedError(code, message, { cause: error });
}
