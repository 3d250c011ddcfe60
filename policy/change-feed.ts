import type { Statement } from '../db/connections/statement.js';
import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';

/** Between two looks, in milliseconds: with the time to read a tenant's policies, a change is in force within a second. */
const INTERVAL_MS = 300;

/** The tenants whose policies have changed, and the place from which the next look goes on. */
const CHANGES: Statement<{ next: string; revisions: Record<string, number> }> = {
  name: 'policy_changes',
  text: 'SELECT row_to_json(r) FROM policy_changes($1) AS r',
};

/** The feed of changes of policies and guards, one for each process. */
export class ChangeFeed {
  readonly #db: Pick<Db, 'systemCall'>;
  readonly #onChanges: (revisions: ReadonlyMap<string, number>) => void;
  readonly #loop: Loop;
  /** Null before the first look: what was committed earlier is in everything that is read from then on. */
  #next: string | null = null;
  /** When the newest look began, on `performance.now()`. */
  lookedAtMs = Number.NEGATIVE_INFINITY;
  /** Every change that was committed before this time is known; on `performance.now()`. */
  confirmedAtMs = Number.NEGATIVE_INFINITY;

  /** @param onChanges gets the newest revisions of tenants, some of them again */
  constructor(db: Pick<Db, 'systemCall'>, log: Logger, onChanges: (revisions: ReadonlyMap<string, number>) => void) {
    this.#db = db;
    this.#onChanges = onChanges;
    this.#loop = new Loop({
      name: 'policy changes',
      intervalMs: INTERVAL_MS,
      immediate: true,
      work: () => this.#look(),
      log,
    });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<void> {
    const startedAtMs = performance.now();
    const from = this.#next ?? '18446744073709551615';
    const [row] = await this.#db.systemCall(CHANGES, [from]);
    if (!row) throw new Error('the policy revisions gave no row');
    this.#next = row.next;
    this.lookedAtMs = startedAtMs;
    this.#onChanges(new Map(Object.entries(row.revisions)));
    this.confirmedAtMs = startedAtMs;
  }
}
