import type { HeartbeatPayload } from '../contracts/agents.js';
import { CLOSE_CODES } from '../contracts/errors.js';
import type { Connection, Protocol } from './connection.js';
import type { MeshContext } from './context.js';
import { handleDispatchFrame, tooMany } from './dispatch-frames.js';
import { type AgentFrame, encodeFrame, errorFrame, parseFrame } from './frames.js';
import { answerHello } from './hello.js';

/** Handles one text message of an agent (specification section 6). Resolves when the next one may be handled. */
async function handleText(context: MeshContext, connection: Connection, text: string): Promise<void> {
  const inbound = parseFrame(text);
  connection.showedLife = true;
  if (inbound.kind === 'bad') return refuse(connection, inbound.problem, inbound.id);
  if (connection.state === 'UPGRADED') {
    if (inbound.kind === 'frame' && inbound.frame.type === 'hello')
      return answerHello(context, connection, inbound.frame.payload);
    return refuse(
      connection,
      'The first frame must be hello.',
      inbound.kind === 'frame' ? inbound.frame.id : inbound.id,
    );
  }
  if (inbound.kind === 'unknown') {
    return void connection.socket.send(errorFrame('BAD_FRAME', `Unknown frame type ${inbound.type}.`, inbound.id));
  }
  return handleFrame(context, connection, inbound.frame);
}

function refuse(connection: Connection, problem: string, replyTo?: string): void {
  connection.socket.fail('BAD_FRAME', problem, CLOSE_CODES.PROTOCOL_ERROR, replyTo);
}

async function handleFrame(context: MeshContext, connection: Connection, frame: AgentFrame): Promise<void> {
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
    case 'error':
      if (frame.reply_to !== '' && context.tools.failed(connection, frame)) return;
      return handleDispatchFrame(context, connection, frame);
    case 'dispatch_ack':
    case 'dispatch_chunk':
    case 'dispatch_result':
      return handleDispatchFrame(context, connection, frame);
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
  void context.statuses.write(connection, { beat: { ...beat, ...drains } });
}

/** The subprotocol `service.v1` as the mesh speaks it. */
export const AGENT_PROTOCOL: Protocol = { onText: handleText };
