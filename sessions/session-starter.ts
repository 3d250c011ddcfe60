import { Loop } from '../runtime/loop.js';
import type { SessionDeps } from './session-deps.js';
import type { SessionRef } from './session-ref.js';
import { expireIfIdle } from './sessions.js';

/** Starts or wakes the workflow of a session; resolves when Temporal has acknowledged it. */
export interface SessionWorkflows {
  wakeSession(ref: SessionRef): Promise<void>;
}

/** How the starter paces itself. */
export interface StarterPace {
  /** A session rests this long, in milliseconds, before its workflow is started, and again before that is repeated. */
  afterMs: number;
  /** The pause after each, in times of what it took: the share of the machine that this may have is 1 in so many. */
  pauseTimes: number;
  pauseMaxMs: number;
  /** Milliseconds until the next look when nobody waits, and between two while the process has other work. */
  idleMs: number;
  /** From this share of its time on, 0 to 1, the process has other work. */
  busyFrom: number;
}

const PACE: StarterPace = { afterMs: 10_000, pauseTimes: 20, pauseMaxMs: 1_000, idleMs: 5_000, busyFrom: 0.25 };

interface WaitingSession extends SessionRef {
  /** It needs no workflow any more: it is past its idle time, or has ended. */
  over: boolean;
}

/** Moving the mark claims it, so that several nodes share the work and one that dies leaves it to be repeated. */
const CLAIM_OLDEST = `
  WITH picked AS MATERIALIZED (
    SELECT tenant_id, session_id FROM sessions
     WHERE wake_requested_at < now() - $1 * interval '1 ms' AND NOT explicit
     ORDER BY wake_requested_at LIMIT 1 FOR UPDATE SKIP LOCKED)
  UPDATE sessions t SET wake_requested_at = now() FROM picked
   WHERE t.tenant_id = picked.tenant_id AND t.session_id = picked.session_id
  RETURNING t.tenant_id, t.session_id, t.supervised_at IS NULL AND (t.status <> 'active'
    OR t.idle_timeout_seconds > 0 AND t.created_at < now() - t.idle_timeout_seconds * interval '1 s') AS over`;

/**
 * Starts the workflows of sessions that a `/send` without context opened: operators see them, and they end the session when it idles,
 * which is far off. So they begin by and by, one at a time, with pauses in which everything else has the machine. At thousands of
 * messages a second they wait until the load drops; what is over by then is ended here, without a workflow.
 */
export class SessionStarter {
  readonly #deps: SessionDeps;
  readonly #temporal: SessionWorkflows;
  readonly #pace: StarterPace;
  readonly #loop: Loop;
  #used = performance.eventLoopUtilization();

  constructor(deps: SessionDeps, temporal: SessionWorkflows, pace: Partial<StarterPace> = {}) {
    this.#deps = deps;
    this.#temporal = temporal;
    this.#pace = { ...PACE, ...pace };
    const loop = { name: 'session starter', intervalMs: this.#pace.idleMs, immediate: true, log: deps.log };
    this.#loop = new Loop({ ...loop, work: () => this.#next() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends after the turn under way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** @returns the pause after it, in milliseconds */
  async #next(): Promise<number> {
    const { pauseTimes, pauseMaxMs, idleMs, busyFrom } = this.#pace;
    const used = performance.eventLoopUtilization();
    const isBusy = performance.eventLoopUtilization(used, this.#used).utilization >= busyFrom;
    this.#used = used;
    const from = performance.now();
    const found = await this.#bringOldest();
    return found && !isBusy ? Math.min(pauseMaxMs, (performance.now() - from) * pauseTimes) : idleMs;
  }

  /** @returns whether one waited */
  async #bringOldest(): Promise<boolean> {
    const [session] = await this.#deps.db.system((tx) => tx.query<WaitingSession>(CLAIM_OLDEST, [this.#pace.afterMs]));
    if (!session) return false;
    const { tenant_id, session_id, over } = session;
    const ended = over && (await expireIfIdle(this.#deps, { tenant_id, session_id })).ended;
    if (!ended) await this.#temporal.wakeSession({ tenant_id, session_id });
    return true;
  }
}
