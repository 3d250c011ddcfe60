import type { HeartbeatPayload } from '../contracts/agents.js';
import { CLOSE_CODES } from '../contracts/errors.js';
import type { Connection, Protocol } from './connection.js';
import type { MeshContext } from './context.js';
import { type DispatchFrame, handleDispatchFrame, tooMany } from './dispatch-frames.js';
import { type AgentFrame, encodeFrame, errorFrame, parseFrame } from './frames.js';
import { answerHello } from './hello.js';

/**
 * Handles one text message of an agent (specification section 6).
 * @returns what the next one has to wait for; most wait for nothing, and then no promise is made
 */
function handleText(context: MeshContext, connection: Connection, text: string): Promise<void> | undefined {
  const inbound = parseFrame(text);
  connection.showedLife = true;
  if (inbound.kind === 'bad') {
    refuse(connection, inbound.problem, inbound.id);
    return undefined;
  }
  if (connection.state === 'UPGRADED') {
    if (inbound.kind === 'frame' && inbound.frame.type === 'hello')
      return answerHello(context, connection, inbound.frame.payload);
    refuse(connection, 'The first frame must be hello.', inbound.kind === 'frame' ? inbound.frame.id : inbound.id);
    return undefined;
  }
  if (inbound.kind === 'unknown') {
    connection.socket.send(errorFrame('BAD_FRAME', `Unknown frame type ${inbound.type}.`, inbound.id));
    return undefined;
  }
  const { frame } = inbound;
  if (frame.type === 'error' && frame.reply_to !== '' && context.tools.failed(connection, frame)) return undefined;
  return isOfDispatch(frame)
    ? handleDispatchFrame(context, connection, frame)
    : handleOther(context, connection, frame);
}

function refuse(connection: Connection, problem: string, replyTo?: string): void {
  connection.socket.fail('BAD_FRAME', problem, CLOSE_CODES.PROTOCOL_ERROR, replyTo);
}

function isOfDispatch(frame: AgentFrame): frame is DispatchFrame {
  return frame.type === 'error' || frame.type.startsWith('dispatch_');
}

async function handleOther(
  context: MeshContext,
  connection: Connection,
  frame: Exclude<AgentFrame, DispatchFrame>,
): Promise<void> {
  const { socket } = connection;
  switch (frame.type) {
    case 'hello':
      return socket.fail('DUPLICATE_HELLO', 'hello was answered already.', CLOSE_CODES.DUPLICATE_HELLO, frame.id);
    case 'ping':
      return void socket.send(encodeFrame('pong', { nonce: frame.payload.nonce }, { reply_to: frame.id }));
    case 'pong':
      return connection.ponged();
    case 'heartbeat':
      if (!connection.lookups.take()) return tooMany(connection, frame.id);
      return takeHeartbeat(context, connection, frame.payload, frame.id);
    case 'close_request':
      return connection.drain(frame.payload.grace_seconds * 1_000);
    case 'tool_call':
      return context.tools.called(connection, frame);
    case 'tool_result':
      return context.tools.answered(connection, frame);
    default:
      frame satisfies never;
  }
}

function takeHeartbeat(context: MeshContext, connection: Connection, beat: HeartbeatPayload, frameId: string): void {
  if (beat.instance_id !== undefined && beat.instance_id !== connection.instance_id) {
    const message = 'heartbeat names another instance than the address.';
    connection.socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH, frameId);
    return;
  }
  // Not waited for: with the database away, results behind it must still be taken.
  const drains = connection.state === 'DRAINING' ? { status: 'draining' as const } : {};
  void context.statuses.write(connection, {
    beat: { ...beat, ...sessionsBeyond(context, connection, beat), ...drains },
  });
}

/**
 * Sessions that the agent reports beyond the work that this node knows of, none otherwise. Looked at here, in the order of the frames: by
 * the time that the report is written, a dispatch that it counts may have ended.
 */
function sessionsBeyond(
  { inflight }: MeshContext,
  { agentKey }: Connection,
  { current_sessions: reported }: HeartbeatPayload,
): Pick<HeartbeatPayload, 'current_sessions'> {
  if (reported === undefined) return {};
  return { current_sessions: reported > inflight.countOf(agentKey) ? reported : 0 };
}

/** The subprotocol `service.v1` as the mesh speaks it. */
export const AGENT_PROTOCOL: Protocol = { onText: handleText };
