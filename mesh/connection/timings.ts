import { LIMITS } from '../../contracts/limits.js';

/** The time that a stopping node has after its grace to offer what still runs to another node. What it does not offer by then is lost. */
export const TRANSFER_MS = 4_000;
/** Time for writes that are in progress when a stop's grace is over. */
export const LAST_WRITES_MS = 5_000;
/** A stopping node ends the grace of its connections itself, within this time. */
export const STOP_MARGIN_MS = TRANSFER_MS + LAST_WRITES_MS;

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
  /** How often it is looked whether the certificate was replaced. */
  certificateMs: number;
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
  certificateMs: 5_000,
  deadNodeMs: 15_000,
};
