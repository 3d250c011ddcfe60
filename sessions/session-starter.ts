import { Loop } from '../runtime/loop.js';
import type { SessionDeps, SessionRef } from './session-deps.js';
import { expireIfIdle } from './session-end.js';

/** How fast the starter works. */
const PACE = {
  /** Milliseconds after a session opens until its workflow is started, and again until the start is repeated. */
  afterMs: 10_000,
  /** The pause after each start, as a multiple of the time it took, so that starting takes a small share of the machine. */
  pauseTimes: 20,
  pauseMaxMs: 1_000,
  /** Milliseconds until the next start when no session waits or while the process is busy. */
  idleMs: 5_000,
  /** The event-loop utilization, 0 to 1, from which on the process counts as busy. */
  busyFrom: 0.25,
};

interface WaitingSession extends SessionRef {
  /** Its idle timeout has passed or it has ended, so it needs no workflow. */
  over: boolean;
}

/** Claims a session by moving `wake_requested_at`: nodes share the work, and a claim of a node that dies becomes due again. */
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
 * Starts the workflows of sessions that a `/send` without context opened, in the background. These workflows show the session to operators
 * and end it when it idles, so nothing waits for them: they start one at a time, with pauses. Under high load they wait, and a session that
 * idles out meanwhile is ended here without a workflow.
 */
export class SessionStarter {
  readonly #pace: typeof PACE;
  readonly #loop: Loop;
  #used = performance.eventLoopUtilization();

  /** @param temporal starts or wakes the workflow of a session; resolves when Temporal has acknowledged it */
  constructor(
    private readonly deps: SessionDeps,
    private readonly temporal: { wakeSession(ref: SessionRef): Promise<void> },
    pace: Partial<typeof PACE> = {},
  ) {
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

  /** Starts one workflow. @returns the pause until the next one, in milliseconds */
  async #next(): Promise<number> {
    const { pauseTimes, pauseMaxMs, idleMs, busyFrom } = this.#pace;
    const used = performance.eventLoopUtilization();
    const isBusy = performance.eventLoopUtilization(used, this.#used).utilization >= busyFrom;
    this.#used = used;
    const startedAt = performance.now();
    const found = await this.#startOldest();
    return found && !isBusy ? Math.min(pauseMaxMs, (performance.now() - startedAt) * pauseTimes) : idleMs;
  }

  /** @returns whether a session was due */
  async #startOldest(): Promise<boolean> {
    const [session] = await this.deps.db.system((tx) => tx.query<WaitingSession>(CLAIM_OLDEST, [this.#pace.afterMs]));
    if (!session) return false;
    const { tenant_id, session_id, over } = session;
    const ended = over && (await expireIfIdle(this.deps, { tenant_id, session_id })).ended;
    if (!ended) await this.temporal.wakeSession({ tenant_id, session_id });
    return true;
  }
}
