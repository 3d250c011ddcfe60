import type { FrameErrorCode } from '../../contracts/errors.js';
import { OutboundError, type OutboundErrorCode } from '../../http/outbound.js';
import type { AgentResult } from '../../messages/dispatch/dispatches.js';
import { HttpRefusal } from './call.js';

/** How a dispatch to a hosted agent ended, before anything of it is written. */
export type Conclusion =
  | { kind: 'answered'; outcome: AgentResult }
  /** `failing`: counts as a failure of the agent (refused, reset, 5xx, timeout). */
  | { kind: 'failed'; code: FrameErrorCode; message: string; failing: boolean }
  /** No byte of it went out. */
  | { kind: 'not_sent'; cause: OutboundErrorCode };

function failed(code: FrameErrorCode, message: string, failing: boolean): Conclusion {
  return { kind: 'failed', code, message, failing };
}

/** The agent's task is lost sight of: its connection ended early, or it cannot be asked about. */
export function lost(message: string): Conclusion {
  return failed('AGENT_DISCONNECTED', message, true);
}

/** Something came back that is no A2A answer. */
export function unfit(problem: string): Conclusion {
  return failed('HANDLER_ERROR', `The agent's answer ${problem}.`, false);
}

/** A JSON-RPC error is an answer: the agent lives and reports a failure. */
export function refused(code: number, message: string): Conclusion {
  const text = `${message.slice(0, 4_000) || 'The agent reported an error.'} (JSON-RPC ${code})`.toWellFormed();
  return {
    kind: 'answered',
    outcome: { state: 'failed', artifacts: [], error: { code: 'HANDLER_ERROR', message: text } },
  };
}

function fromStatus(status: number): Conclusion {
  if (status === 401 || status === 403) {
    return failed('HANDLER_ERROR', `The agent refused the platform's token (HTTP ${status}).`, false);
  }
  return failed('HANDLER_ERROR', `The agent answered HTTP ${status}.`, status >= 500);
}

function fromOutbound(error: OutboundError): Conclusion {
  if (!error.requestSent) return { kind: 'not_sent', cause: error.code };
  if (error.code === 'REDIRECT') {
    return failed('HANDLER_ERROR', 'The agent answered with a redirect, which is not followed.', false);
  }
  if (error.code === 'TOO_LARGE') return unfit('is larger than a stream may be');
  if (error.code === 'TIMEOUT') return failed('DEADLINE_EXCEEDED', 'The agent did not answer in time.', true);
  return lost('The connection to the agent broke before its answer was complete.');
}

/** The conclusion for what an exchange threw; undefined for an error that is not the agent's. */
export function fromThrown(error: unknown): Conclusion | undefined {
  if (error instanceof HttpRefusal) return fromStatus(error.status);
  return error instanceof OutboundError ? fromOutbound(error) : undefined;
}
