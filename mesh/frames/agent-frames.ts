import type { HeartbeatPayload } from '../../contracts/api/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { ErrorPayload } from '../../contracts/frames.js';
import { refusal } from '../../tools/tool-result.js';
import type { SentDispatch } from '../connected/connected-transport.js';
import type { Connection } from '../connection/connection.js';
import type { MeshContext } from '../connection/context.js';
import { answerHello } from '../connection/hello.js';
import { answerReauth } from '../connection/reauth.js';
import { answerNotOpen, answerRateLimited, logAgentError } from './ended-dispatches.js';
import {
  type AgentFrame,
  answerTo,
  type BadFrame,
  encodeFrame,
  errorFrame,
  parseFrame,
  type UnfitFrame,
  unfitAnswer,
} from './frames.js';

/** A frame about a dispatch; an `error` may be about something else. */
type DispatchFrame = Extract<AgentFrame, { type: 'dispatch_ack' | 'dispatch_chunk' | 'dispatch_result' | 'error' }>;

/** A chunk or a result whose content does not fit. */
type UnfitAnswer = UnfitFrame<'dispatch_chunk' | 'dispatch_result'>;

function handleFrame(context: MeshContext, connection: Connection, frame: AgentFrame): Promise<void> | undefined {
  const { socket } = connection;
  switch (frame.type) {
    case 'hello':
      return void socket.fail('DUPLICATE_HELLO', 'hello was answered already.', CLOSE_CODES.DUPLICATE_HELLO, frame.id);
    case 'ping':
      return void socket.send(encodeFrame('pong', { nonce: frame.payload.nonce }, answerTo(frame)));
    case 'pong':
      return void connection.pongReceived();
    case 'heartbeat':
      if (!connection.lookups.take()) return void answerRateLimited(connection, answerTo(frame));
      return void handleHeartbeat(context, connection, frame.payload, frame.id);
    case 'reauth':
      // Not awaited: frames that follow need no new token.
      return void answerReauth(context, connection, frame);
    case 'close_request':
      return void connection.drain(frame.payload.grace_seconds * 1_000);
    case 'tool_call':
      return void context.tools.called(connection, frame);
    case 'tool_result':
      return void context.tools.answered(connection, frame);
    case 'error':
      if (frame.reply_to !== '' && context.tools.failed(connection, frame)) return undefined;
      return handleDispatchFrame(context, connection, frame);
    default:
      return handleDispatchFrame(context, connection, frame);
  }
}

/** Invalid content fails what the frame is about: its dispatch, the call that it answers, or the call that it makes. */
function handleUnfit(context: MeshContext, connection: Connection, frame: UnfitFrame): Promise<void> | undefined {
  const { id, reply_to, traceparent, problem } = frame;
  switch (frame.type) {
    case 'dispatch_chunk':
    case 'dispatch_result':
      return handleDispatchFrame(context, connection, frame);
    case 'error':
      return handleFrame(context, connection, { type: 'error', id, reply_to, payload: handlerError(problem) });
    case 'tool_result':
      context.tools.answered(connection, { reply_to, payload: { ok: false, error: handlerError(problem) } });
      return undefined;
    case 'tool_call':
      connection.socket.send(
        encodeFrame('tool_result', refusal('BAD_REQUEST', problem), { reply_to: id, traceparent }),
      );
      return undefined;
    default:
      return frame satisfies never;
  }
}

/** Fails the dispatch or call that a bad frame names before its socket closes, so that a resume does not repeat it. */
function refuse(context: MeshContext, connection: Connection, { id, reply_to, problem }: BadFrame): void {
  if (connection.isLive && reply_to !== '') {
    const dispatch = openDispatch(context, connection, reply_to);
    if (!dispatch) context.tools.failed(connection, { reply_to, payload: handlerError(problem) });
    else if (!dispatch.isFrozen) dispatch.unfit(problem);
  }
  connection.socket.fail('BAD_FRAME', problem, CLOSE_CODES.BAD_FRAME, id);
}

function handlerError(problem: string): ErrorPayload {
  return { code: 'HANDLER_ERROR', message: unfitAnswer(problem), retryable: false };
}

/**
 * Handles a frame about a dispatch. A frame about a dispatch that is not open here is answered with the reason.
 * @returns what the next frame has to wait for; usually nothing
 */
function handleDispatchFrame(
  context: MeshContext,
  connection: Connection,
  frame: DispatchFrame | UnfitAnswer,
): Promise<void> | undefined {
  const { reply_to, traceparent } = frame;
  if (frame.type === 'error' && reply_to === '') {
    logAgentError(context, connection, frame.payload);
    return undefined;
  }
  const dispatch = openDispatch(context, connection, reply_to);
  if (!dispatch) return answerNotOpen(context, connection, { reply_to, ...(traceparent && { traceparent }) });
  if (dispatch.isFrozen) return undefined;
  if (traceparent) {
    const { dispatch_id } = dispatch.open;
    context.log.debug({ dispatch_id, type: frame.type, traceparent }, 'agent names its trace');
  }
  if ('problem' in frame) dispatch.unfit(frame.problem);
  else handleOpen(dispatch, frame);
  return undefined;
}

/** The dispatch of a frame, while this connection's agent has it and its result has not come. */
function openDispatch(
  { sent }: Pick<MeshContext, 'sent'>,
  { agentKey }: Connection,
  frameId: string,
): SentDispatch | undefined {
  const dispatch = sent.get(frameId);
  return dispatch?.isOpen && dispatch.agentKey === agentKey ? dispatch : undefined;
}

function handleOpen(dispatch: SentDispatch, frame: DispatchFrame): void {
  switch (frame.type) {
    case 'dispatch_ack':
      break; // an acknowledgement does not extend the deadline
    case 'dispatch_chunk':
      dispatch.chunk(frame.payload);
      break;
    case 'dispatch_result':
      dispatch.answer(frame.payload);
      break;
    case 'error':
      dispatch.agentFailed(frame.payload);
      break;
    default:
      frame satisfies never;
  }
}

function handleHeartbeat(context: MeshContext, connection: Connection, beat: HeartbeatPayload, frameId: string): void {
  if (beat.instance_id !== undefined && beat.instance_id !== connection.instance_id) {
    const message = 'heartbeat names another instance than the address.';
    connection.socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH, frameId);
    return;
  }
  // Not awaited: while the database is away, results that follow are still taken.
  const draining = connection.state === 'DRAINING' ? { status: 'draining' as const } : {};
  void context.statuses.write(connection, {
    beat: { ...beat, ...sessionsBeyond(context, connection, beat), ...draining },
  });
}

/**
 * The reported sessions if they are more than the dispatches that run here, else 0. Compared before anything is awaited, because a dispatch
 * that the report counts may end before it is written.
 */
function sessionsBeyond(
  { runner }: MeshContext,
  { agentKey }: Connection,
  { current_sessions: reported }: HeartbeatPayload,
): Pick<HeartbeatPayload, 'current_sessions'> {
  if (reported === undefined) return {};
  return { current_sessions: reported > runner.running.countOf(agentKey) ? reported : 0 };
}

/**
 * Handles one text message of an agent, in the subprotocol `service.v1`.
 * @returns what the next message has to wait for; usually nothing
 */
export function handleText(context: MeshContext, connection: Connection, text: string): Promise<void> | undefined {
  const inbound = parseFrame(text);
  connection.noteFrame();
  if (inbound.kind === 'bad') {
    refuse(context, connection, inbound);
    return undefined;
  }
  if (connection.state === 'UPGRADED') {
    if (inbound.kind === 'frame' && inbound.frame.type === 'hello')
      return answerHello(context, connection, inbound.frame.payload);
    const id = 'frame' in inbound ? inbound.frame.id : inbound.id;
    refuse(context, connection, { id, reply_to: '', problem: 'The first frame must be hello.' });
    return undefined;
  }
  if (inbound.kind === 'unknown') {
    const { type, id, traceparent } = inbound;
    connection.socket.send(errorFrame('BAD_FRAME', `Unknown frame type ${type}.`, id, traceparent));
    return undefined;
  }
  if (inbound.kind === 'unfit') return handleUnfit(context, connection, inbound.frame);
  return handleFrame(context, connection, inbound.frame);
}
