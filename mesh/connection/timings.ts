import { LIMITS } from '../../contracts/limits.js';

/** Intervals and time limits of the mesh, in milliseconds. Tests pass shorter ones. */
export interface MeshTimings {
  helloTimeoutMs: number;
  pingIntervalMs: number;
  /** A socket whose buffer stays over the soft limit this long is closed. */
  blockedMaxMs: number;
  /** How long a close handshake may take before the socket is destroyed. */
  closeTimeoutMs: number;
  /** How often the node's row is renewed, and connections are compared with the database. */
  reconcileMs: number;
  /** How often `last_seen` of living agents is written. */
  lastSeenMs: number;
  /** A node that has not renewed for this long is dead. */
  deadNodeMs: number;
}

export const DEFAULT_TIMINGS: MeshTimings = {
  helloTimeoutMs: LIMITS.helloTimeoutMs,
  pingIntervalMs: LIMITS.pingIntervalMs,
  blockedMaxMs: LIMITS.blockedMsMax,
  closeTimeoutMs: 5_000,
  reconcileMs: 2_000,
  lastSeenMs: 10_000,
  deadNodeMs: 15_000,
};
