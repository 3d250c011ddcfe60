import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Db } from '../../db/pool.js';
import type { Dispatches } from '../../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import type { Config } from '../../runtime/config.js';
import type { Logger } from '../../runtime/logger.js';
import type { ToolCalls } from '../../tools/tool-calls.js';
import type { MeshTimings } from '../connection/timings.js';
import type { Reservations } from '../reservations.js';

/** What a mesh node is made with. */
export interface MeshServerOptions {
  config: Pick<Config, 'FLEET_HOST' | 'FLEET_MESH_PORT' | 'RESUME_WINDOW_MS' | 'TRUST_PROXY_CIDRS'>;
  db: Db;
  log: Logger;
  bus: ChunkBus;
  dispatches: Dispatches;
  authenticator: Authenticator;
  /** Certificate and key in PEM; undefined behind a proxy that ends TLS. */
  tls: { cert: string | Buffer; key: string | Buffer } | undefined;
  /** New at every boot. */
  meshId: string;
  /** Answers the paths of the HTTP face that are served here too. */
  handler?: (request: IncomingMessage, response: ServerResponse) => void;
  /** The tool calls of this process; its link goes by the same `meshId`. */
  tools: ToolCalls;
  /** Dispatches that this process is committing; shared with the dispatcher of hosted agents. */
  reservations?: Reservations;
  timings?: Partial<MeshTimings>;
}
