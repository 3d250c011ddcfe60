import { LIMITS } from '../../contracts/limits.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { Destination, Transport, TransportResult } from '../../messages/runner/transport.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { agentKeyOf, uuidOf } from '../../runtime/ids.js';
import type { Connection } from '../connection/connection.js';
import { errorFrame } from '../connection/frames.js';
import { SentDispatch, type SentDispatchDeps } from './sent-dispatch.js';

/** What the transport works with on its node. */
export interface ConnectedTransportDeps {
  bus: Pick<ChunkBus, 'publish'>;
  registry: {
    get(agentKey: string): Connection | undefined;
    isConnecting(agentKey: string): boolean;
    helloSettled(agentKey: string): Promise<void>;
    epochSettled(agentKey: string): Promise<void>;
  };
  runner: { countOf(agentKey: string): number };
  sent: { add(dispatch: SentDispatch): void };
  /** Offers what still runs to other nodes. */
  transfer(): Promise<void>;
}

/** Carries dispatches to the agents whose sockets are on this node. */
export class ConnectedTransport implements Transport {
  readonly #deps: ConnectedTransportDeps;
  readonly #sentDeps: SentDispatchDeps;

  constructor(deps: ConnectedTransportDeps) {
    this.#deps = deps;
    this.#sentDeps = { bus: deps.bus, send: (agentKey, frame) => this.#send(agentKey, frame) };
  }

  connecting(agent: Destination): Promise<void> {
    return this.#deps.registry.helloSettled(agentKeyOf(agent));
  }

  epochSettled(agent: Destination): Promise<void> {
    return this.#deps.registry.epochSettled(agentKeyOf(agent));
  }

  reach(agent: Destination): { epoch: number } | { refusal: string } {
    const connection = this.#deps.registry.get(agentKeyOf(agent));
    if (!connection || connection.state === 'SUSPENDED' || connection.state === 'CLOSED')
      return { refusal: 'NOT_CONNECTED' };
    const refusal = this.#refusal(connection);
    return refusal === undefined ? { epoch: connection.epoch } : { refusal };
  }

  send(open: OpenDispatch, signal: AbortSignal): Promise<TransportResult> {
    const dispatch = new SentDispatch(open, agentKeyOf(open), signal, this.#sentDeps);
    this.#deps.sent.add(dispatch);
    dispatch.send();
    return dispatch.result;
  }

  /** The agent's `welcome` says which of its dispatches are sent again. */
  async adopt(open: OpenDispatch, progress: string, signal: AbortSignal): Promise<TransportResult> {
    const dispatch = SentDispatch.continued(open, agentKeyOf(open), signal, this.#sentDeps, progress);
    this.#deps.sent.add(dispatch);
    return dispatch.result;
  }

  transfer(): Promise<void> {
    return this.#deps.transfer();
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
    const { registry, runner } = this.#deps;
    // The connection may be about to be replaced.
    if (state !== 'READY' || registry.isConnecting(agentKey)) return 'NOT_READY';
    if (runner.countOf(agentKey) >= LIMITS.dispatchesInFlightPerConnection) return 'AGENT_BUSY';
    return socket.isCongested ? 'BACKPRESSURE' : undefined;
  }

  #send(agentKey: string, frame: string): boolean {
    const connection = this.#deps.registry.get(agentKey);
    return connection?.isLive === true && connection.socket.send(frame);
  }
}
