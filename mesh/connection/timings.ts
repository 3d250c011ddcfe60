import { LIMITS } from '../../contracts/limits.js';

/** The mesh's clocks, in milliseconds. Tests pass shorter ones. */
export interface MeshTimings {
  helloTimeoutMs: number;
  pingIntervalMs: number;
  /** A socket whose buffer stays over the soft bound this long is closed. */
  blockedMaxMs: number;
  /** How long a closing handshake may take before the socket is destroyed. */
  closeTimeoutMs: number;
  /** Renewal of the node's row, and comparison of memory with the database. */
  reconcileMs: number;
  /** How often living agents' `last_seen` is written. */
  signOfLifeMs: number;
  /** A node that has not renewed for this long is dead. */
  deadNodeMs: number;
  /** How often waiting dispatches report to who waits for them. */
  heartbeatMs: number;
}

export const DEFAULT_TIMINGS: MeshTimings = {
  helloTimeoutMs: LIMITS.helloTimeoutMs,
  pingIntervalMs: LIMITS.pingIntervalMs,
  blockedMaxMs: LIMITS.blockedMsMax,
  closeTimeoutMs: 5_000,
  reconcileMs: 2_000,
  signOfLifeMs: 10_000,
  deadNodeMs: 15_000,
  heartbeatMs: 2_000,
};
