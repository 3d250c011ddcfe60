import { AGENT_NOT_READY, type FrameErrorCode } from '../../contracts/errors.js';
import { OutboundError } from '../../http/outbound.js';
import type { AgentResult } from '../../messages/dispatch/dispatches.js';
import { CredentialError } from './access-tokens.js';
import type { RpcFailure } from './answer.js';
import { describeFailure, HttpRefusal } from './refusal.js';

/** A failed dispatch. @param health given when it counts as a failure of the agent (connection refused or reset, 5xx, timeout) */
export function failed(code: FrameErrorCode, message: string, health?: 'failing'): AgentResult {
  return { state: 'failed', error: { code, message }, ...(health && { health }) };
}

/** The outcome of the agent's task is unknown: its connection ended early, or it cannot be asked. */
export function unknownOutcome(message: string): AgentResult {
  const error = { code: 'AGENT_DISCONNECTED', message };
  return { state: 'failed', error, is_loss: true, health: 'failing' };
}

/** The answer is not a valid A2A answer. */
export function invalidAnswer(problem: string): AgentResult {
  return failed('HANDLER_ERROR', `The agent's answer ${problem}.`);
}

/** A JSON-RPC error is an answer: the agent works and reports a failure. */
export function rpcError(failure: RpcFailure): AgentResult {
  const error = { code: 'HANDLER_ERROR', message: describeFailure(failure) };
  return { state: 'failed', artifacts: [], error, health: 'well' };
}

/**
 * The result for an error that a request to the agent threw; undefined for an error that is not the agent's. `release_dispatch` knows the
 * reasons of `not_sent`: the message then waits for any agent of the type, unless it names the instance (`queue_for`).
 */
export function resultOfError(error: unknown): AgentResult | undefined {
  if (error instanceof HttpRefusal) return fromRefusal(error);
  if (error instanceof CredentialError) return failed(error.code, error.message);
  return error instanceof OutboundError ? fromOutbound(error) : undefined;
}

function fromRefusal({ status, notReady, detail, message }: HttpRefusal): AgentResult {
  if (notReady) return { state: 'not_sent', reason: AGENT_NOT_READY, health: 'failing' };
  if (status === 401 || status === 403) {
    const what = `The agent refused the platform's token or key (HTTP ${status})`;
    return failed('HANDLER_ERROR', detail === '' ? `${what}.` : `${what}: ${detail}`);
  }
  return failed('HANDLER_ERROR', message, status >= 500 ? 'failing' : undefined);
}

function fromOutbound(error: OutboundError): AgentResult {
  if (!error.requestSent) return { state: 'not_sent', reason: 'CONNECT_FAILED', health: 'failing', cause: error.code };
  if (error.code === 'REDIRECT')
    return failed('HANDLER_ERROR', 'The agent answered with a redirect, which is not followed.');
  if (error.code === 'TOO_LARGE') return invalidAnswer('is larger than a stream may be');
  if (error.code === 'TIMEOUT') return failed('DEADLINE_EXCEEDED', 'The agent did not answer in time.', 'failing');
  return unknownOutcome('The connection to the agent broke before its answer was complete.');
}
