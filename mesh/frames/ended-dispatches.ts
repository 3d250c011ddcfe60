import type { FrameErrorCode } from '../../contracts/errors.js';
import type { ErrorPayload } from '../../contracts/frames.js';
import { dispatchStates } from '../../messages/dispatch/agent-dispatches.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Connection } from '../connection/connection.js';
import type { MeshContext } from '../connection/context.js';
import { errorFrame, type FrameContext } from './frames.js';

/** Pause between two errors of one connection that are logged. */
const ERROR_LOG_PAUSE_MS = 10_000;
/** Length of an agent's error code in the log. */
const ERROR_CODE_CHARS = 64;
/** Length of an agent's error message in the log. */
const ERROR_MESSAGE_CHARS = 200;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Logs an error that is about no dispatch, at most one in `ERROR_LOG_PAUSE_MS`. */
export function logAgentError({ log }: MeshContext, connection: Connection, { code, message }: ErrorPayload): void {
  const nowMs = performance.now();
  if (nowMs - connection.errorLoggedAtMs < ERROR_LOG_PAUSE_MS) return;
  connection.errorLoggedAtMs = nowMs;
  const about = {
    tenant_id: connection.tenant_id,
    instance_id: connection.instance_id,
    code: code.slice(0, ERROR_CODE_CHARS),
  };
  log.info(about, 'agent reported an error');
  log.debug({ ...about, message: message.slice(0, ERROR_MESSAGE_CHARS) }, 'error message of an agent');
}

/** Tells the agent that a frame was ignored, because it sends too many that cost a query. */
export function answerRateLimited(connection: Connection, answering: FrameContext): void {
  answer(connection, answering, ['RATE_LIMITED', 'Too many frames of this kind. Send it again later.']);
}

/** Tells the agent why a frame is ignored: its dispatch has ended, or is not this instance's. */
export async function answerNotOpen(
  context: MeshContext,
  connection: Connection,
  about: FrameContext & { reply_to: string },
): Promise<void> {
  const { sent } = context;
  const frameId = about.reply_to;
  if (sent.endedLately(frameId, connection.agentKey)) return answer(connection, about, ended('closed'));
  if (!connection.lookups.take()) return answerRateLimited(connection, about);
  const [found] = await states(context, connection, [frameId]);
  if (found?.isOpen === false) sent.noteEnded(frameId, connection.agentKey);
  answer(connection, about, reasonOf(found));
}

/** Tells an agent that resumes how dispatches that it still has have ended: CANCELED, or otherwise. */
export async function answerEnded(context: MeshContext, connection: Connection, frameIds: string[]): Promise<void> {
  if (frameIds.length === 0) return;
  const found = await states(context, connection, frameIds);
  for (const [index, frameId] of frameIds.entries()) {
    const canceled: Reason = ['CANCELED', 'The message was canceled.'];
    const reason = found[index]?.state === 'canceled' ? canceled : reasonOf(found[index]);
    answer(connection, { reply_to: frameId }, reason);
  }
}

function answer(connection: Connection, { reply_to, traceparent }: FrameContext, [code, message]: Reason): void {
  connection.socket.send(errorFrame(code, message, reply_to, traceparent));
}

type Reason = [code: FrameErrorCode, message: string];
/** Undefined when the dispatch is not this instance's, null when the database cannot be asked. */
type FoundState = { state: string; isOpen: boolean } | null | undefined;

/** States of dispatches by frame. */
async function states({ db, log }: MeshContext, agent: Connection, frameIds: string[]): Promise<FoundState[]> {
  const wellFormed = frameIds.filter((frameId) => UUID.test(frameId)).map((frameId) => `dsp_${frameId}`);
  if (wellFormed.length === 0) return frameIds.map(() => undefined);
  try {
    const found = await db.tenant(agent.tenant_id, (tx) => dispatchStates(tx, agent, wellFormed));
    return frameIds.map((frameId) => found.get(`dsp_${frameId}`));
  } catch (error) {
    log.warn({ err: errorMessage(error) }, 'dispatches could not be looked up');
    return frameIds.map(() => null);
  }
}

function reasonOf(found: FoundState): Reason {
  if (found === undefined) return ['UNKNOWN_DISPATCH', 'This instance has no such dispatch.'];
  if (found === null) return ['INTERNAL', 'The dispatch could not be looked up.'];
  if (found.isOpen) return ['DISPATCH_ALREADY_TERMINAL', 'The dispatch is not at work on this connection.'];
  return ended(found.state);
}

function ended(state: string): Reason {
  return ['DISPATCH_ALREADY_TERMINAL', `The dispatch has ended: ${state}.`];
}
