import { z } from 'zod';
import { LIMITS } from '../contracts/limits.js';

const HOUR_MS = 3_600_000;
const clock = (defaultMs: number) => z.int().min(1).max(HOUR_MS).default(defaultMs);

/**
 * How long the platform waits, in milliseconds, for what may never come. None of these is a setting for operators: tests shorten the one whose
 * end they wait for, by `FLEET_CLOCKS` where the platform is a process. A wait that no test needs shorter is a constant where it is used.
 */
export const Clocks = z.strictObject({
  // Connections of agents
  /** A new socket that says no hello for so long is closed. */
  helloTimeoutMs: clock(LIMITS.helloTimeoutMs),
  /** Between two pings; an agent that misses three is gone. */
  pingIntervalMs: clock(LIMITS.pingIntervalMs),
  /** A socket whose buffer stays over the soft limit for so long is closed. */
  blockedMaxMs: clock(LIMITS.blockedMsMax),
  /** A close handshake that takes longer ends with the socket. */
  closeTimeoutMs: clock(5_000),
  /** How often `last_seen` of living agents is written. */
  lastSeenMs: clock(10_000),
  /** How long the state of a credential is relied on before it is read again; open streams look twice as often. */
  credentialCheckMs: clock(2_000),
  // Nodes
  /** How often a node renews its row, and compares its connections and dispatches with the database's. */
  reconcileMs: clock(2_000),
  /** A node that has not renewed its row for so long is dead. */
  deadNodeMs: clock(15_000),
  /** How long a stopping node takes to offer to other nodes what outlasts its grace. What it has not offered by then is lost. */
  transferMs: clock(4_000),
  /** How often a node looks whether its certificate was replaced. */
  certificateMs: clock(5_000),
  // Messages
  /** A sweeper does what a process was to do at once and has not done after this time. */
  overdueMs: clock(15_000),
  /** How often a caller that waits reads its message, in case a notice was lost. */
  rereadMs: clock(5_000),
  // What runs behind
  /** How often a worker looks for erasures, and again at one that waits for what is under way. */
  eraseMs: clock(2_000),
  /** While the collector is away it is tried after a second, then after twice as long each time, up to this. */
  exportPauseMaxMs: clock(30_000),
});

export type Clocks = z.infer<typeof Clocks>;

export const DEFAULT_CLOCKS: Clocks = Clocks.parse({});
