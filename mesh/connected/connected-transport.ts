import { agentKeyOf } from '../../agents/agent-row.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentResult, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { Destination, Transport } from '../../messages/runner/transport.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { uuidOf } from '../../runtime/ids.js';
import type { Connection } from '../connection/connection.js';
import type { MeshContext } from '../connection/context.js';
import { errorFrame } from '../connection/frames.js';
import { SentDispatch } from './sent-dispatch.js';

/** Carries dispatches to the agents whose sockets are on this node. */
export class ConnectedTransport implements Transport {
  readonly #context: MeshContext;
  readonly #bus: Pick<ChunkBus, 'publish'>;

  constructor(context: MeshContext, bus: Pick<ChunkBus, 'publish'>) {
    this.#context = context;
    this.#bus = bus;
  }

  connecting(agent: Destination): Promise<void> {
    return this.#context.registry.helloSettled(agentKeyOf(agent));
  }

  epochSettled(agent: Destination): Promise<void> {
    return this.#context.registry.epochSettled(agentKeyOf(agent));
  }

  reach(agent: Destination): { epoch: number } | { refusal: string } {
    const connection = this.#context.registry.get(agentKeyOf(agent));
    if (!connection || connection.state === 'SUSPENDED' || connection.state === 'CLOSED')
      return { refusal: 'NOT_CONNECTED' };
    const refusal = this.#refusal(connection);
    return refusal === undefined ? { epoch: connection.epoch } : { refusal };
  }

  send(open: OpenDispatch, signal: AbortSignal): Promise<AgentResult> {
    const send = (agentKey: string, frame: string): boolean => this.#send(agentKey, frame);
    const dispatch = new SentDispatch(open, agentKeyOf(open), signal, { bus: this.#bus, send });
    this.#context.sent.add(dispatch);
    dispatch.send();
    return dispatch.result;
  }

  notifyClosed(open: OpenDispatch, state: string, reason: string): void {
    const { traceparent } = open.payload.session_context.propagation_headers;
    const frameId = uuidOf(open.dispatch_id);
    const frame =
      state === 'canceled'
        ? errorFrame('CANCELED', reason || 'The message was canceled.', frameId, traceparent)
        : errorFrame('DISPATCH_ALREADY_TERMINAL', `The dispatch has ended: ${state}.`, frameId, traceparent);
    this.#send(agentKeyOf(open), frame);
  }

  /** Why a connection takes no new dispatch. */
  #refusal({ agentKey, state, socket }: Connection): string | undefined {
    const { registry, runner } = this.#context;
    // The connection may be about to be replaced.
    if (state !== 'READY' || registry.isConnecting(agentKey)) return 'NOT_READY';
    if (runner.countOf(agentKey) >= LIMITS.dispatchesInFlightPerConnection) return 'AGENT_BUSY';
    return socket.isCongested ? 'BACKPRESSURE' : undefined;
  }

  #send(agentKey: string, frame: string): boolean {
    const connection = this.#context.registry.get(agentKey);
    return connection?.isLive === true && connection.socket.send(frame);
  }
}
