import type { FrameErrorCode } from '../contracts/errors.js';
import type { ErrorPayload } from '../contracts/frames.js';
import { findDispatch } from '../db/connections.js';
import { errorMessage } from '../runtime/errors.js';
import type { Connection } from './connection.js';
import type { MeshContext } from './context.js';
import { type AgentFrame, errorFrame } from './frames.js';

type DispatchFrame = Extract<AgentFrame, { type: 'dispatch_ack' | 'dispatch_chunk' | 'dispatch_result' | 'error' }>;

/** Between two errors of one connection that are logged, in milliseconds. */
const ERROR_PAUSE_MS = 10_000;
/** Of an agent's error message in the log. */
const ERROR_MESSAGE_CHARS = 200;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Handles a frame about a dispatch. One about a dispatch that does not run here is answered with the reason. */
export async function handleDispatchFrame(
  context: MeshContext,
  connection: Connection,
  frame: DispatchFrame,
): Promise<void> {
  if (frame.type === 'error' && frame.reply_to === '') return noteError(context, connection, frame.payload);
  const dispatch = context.inflight.get(frame.reply_to);
  if (!dispatch?.isOpen || dispatch.agentKey !== connection.agentKey) {
    return answerUnopened(context, connection, frame.reply_to);
  }
  switch (frame.type) {
    case 'dispatch_ack':
      return; // does not extend the deadline
    case 'dispatch_chunk':
      return dispatch.chunk(frame.payload);
    case 'dispatch_result':
      return dispatch.result(frame.payload);
    case 'error':
      return dispatch.agentFailed(frame.payload);
    default:
      frame satisfies never;
  }
}

/** An error of the agent's own, which it may report as often as it likes. */
function noteError({ log }: MeshContext, connection: Connection, { code, message }: ErrorPayload): void {
  const nowMs = performance.now();
  if (nowMs - connection.errorNotedAtMs < ERROR_PAUSE_MS) return;
  connection.errorNotedAtMs = nowMs;
  const about = { tenant_id: connection.tenant_id, instance_id: connection.instance_id, code };
  log.info(about, 'agent reported an error');
  log.debug({ ...about, message: message.slice(0, ERROR_MESSAGE_CHARS) }, 'what the agent said of it');
}

/** Tells the agent why nothing of that dispatch is wanted: it has ended, or is none of the agent's. */
async function answerUnopened(context: MeshContext, connection: Connection, frameId: string): Promise<void> {
  const [code, message] = context.inflight.endedLately(frameId, connection.agentKey)
    ? ended('closed')
    : await lookUp(context, connection, frameId, ended);
  connection.socket.send(errorFrame(code, message, frameId));
}

/** Tells an agent that comes back with a dispatch in its hands how that ended meanwhile: CANCELED, or otherwise. */
export async function answerHeld(context: MeshContext, connection: Connection, frameId: string): Promise<void> {
  const [code, message] = await lookUp(context, connection, frameId, (state) =>
    state === 'canceled' ? ['CANCELED', 'The message was canceled.'] : ended(state),
  );
  connection.socket.send(errorFrame(code, message, frameId));
}

type Reason = [code: FrameErrorCode, message: string];

async function lookUp(
  context: MeshContext,
  connection: Connection,
  frameId: string,
  known: (state: string) => Reason,
): Promise<Reason> {
  const unknown: Reason = ['UNKNOWN_DISPATCH', 'This instance has no such dispatch.'];
  if (!UUID.test(frameId)) return unknown;
  try {
    const { tenant_id } = connection;
    const row = await context.db.tenant(tenant_id, (tx) => findDispatch(tx, tenant_id, `dsp_${frameId}`));
    return row?.instance_id === connection.instance_id ? known(row.state) : unknown;
  } catch (error) {
    context.log.warn({ err: errorMessage(error) }, 'dispatch could not be looked up');
    return ['INTERNAL', 'The dispatch could not be looked up.'];
  }
}

function ended(state: string): Reason {
  return ['DISPATCH_ALREADY_TERMINAL', `The dispatch has ended: ${state}.`];
}
