import type { ChunkBus } from '../../messages/stream/bus.js';
import type { SpanRecorder } from '../../telemetry/traces/span-recorder.js';
import type { Connection } from '../connection/connection.js';
import type { DeadlineDeps } from '../dispatch-deadline.js';

/** What a dispatch to a connected agent works with. */
export interface SentDispatchDeps extends DeadlineDeps {
  spans: SpanRecorder;
  bus: Pick<ChunkBus, 'publish'>;
  /** Sends to the agent's present socket; false when there is none. */
  send(agentKey: string, frame: string): boolean;
}

/** What the transport works with on its node. */
export interface ConnectedTransportDeps<Sent> extends DeadlineDeps {
  spans: SpanRecorder;
  bus: Pick<ChunkBus, 'publish'>;
  registry: {
    get(agentKey: string): Connection | undefined;
    isConnecting(agentKey: string): boolean;
    epochSettled(agentKey: string): Promise<void>;
  };
  sent: { add(dispatch: Sent): void };
  /** Offers what still runs to other nodes. */
  transfer(): Promise<void>;
}
