import type { FrameErrorCode } from '../../contracts/errors.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import { type AgentFrame, answerTo, encodeFrame, errorFrame } from '../frames/frames.js';
import type { Connection } from './connection.js';
import type { AuthenticatedAgent } from './connection-rows.js';
import type { MeshContext } from './context.js';

type ReauthFrame = Extract<AgentFrame, { type: 'reauth' }>;

/**
 * Answers `reauth`: a token that the handshake would take from this agent replaces the connection's token. Any other token is answered with
 * an error, and the connection keeps the token that it has. Never rejects.
 */
export async function answerReauth(context: MeshContext, connection: Connection, frame: ReauthFrame): Promise<void> {
  const { reply_to, traceparent } = answerTo(frame);
  const refuse = (code: FrameErrorCode, message: string): void =>
    void connection.socket.send(errorFrame(code, message, reply_to, traceparent));
  if (!connection.token.beginCheck()) return refuse('RATE_LIMITED', 'Too many tokens came. Send it again later.');
  try {
    const agent = await context.authorize(frame.payload.token, connection.instance_id);
    const problem = problemOf(connection.token.agent, agent);
    if (problem) return refuse('REAUTH_REFUSED', problem);
    connection.token.replace(agent);
    const token_expires_at = new Date(agent.token_exp * 1_000).toISOString();
    connection.socket.send(encodeFrame('reauth_ok', { token_expires_at }, answerTo(frame)));
  } catch (error) {
    if (error instanceof PlatformError && error.statusCode < 500) return refuse('REAUTH_REFUSED', error.message);
    const { instance_id } = connection;
    context.log.warn({ err: errorMessage(error), instance_id }, 'token of an agent could not be checked');
    refuse('INTERNAL', 'The token could not be checked. Send it again later.');
  } finally {
    connection.token.endCheck();
  }
}

/** Why a valid token may not replace the connection's. Tenant and type are compared too: the instance may have been registered anew. */
function problemOf(held: AuthenticatedAgent, offered: AuthenticatedAgent): string | undefined {
  if (offered.tenant_id !== held.tenant_id) return 'The token is of another tenant.';
  if (offered.credential_id !== held.credential_id) return 'The token is of another credential.';
  if (offered.agent_type !== held.agent_type) return 'The instance has another agent type now. Connect again.';
  return undefined;
}
