import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';

/** Between two looks, in milliseconds: with the time to read a tenant's policies, a change is in force within a second. */
const INTERVAL_MS = 300;

/**
 * The tenants that were changed by transactions which a former snapshot did not see, and the place from which the next look goes on: the
 * oldest transaction that may still be open. An index finds them, however many tenants there are. The upper bound leaves out what a restored
 * dump brought from another cluster.
 */
const CHANGES = `
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS next,
         (SELECT coalesce(jsonb_object_agg(r.tenant_id, r.revision), '{}') FROM policy_revisions r
           WHERE r.changed_by >= $1::xid8 AND r.changed_by < pg_snapshot_xmax(pg_current_snapshot())) AS revisions`;

/** The feed of changes of policies and guards, one for each process. */
export class ChangeFeed {
  readonly #db: Pick<Db, 'system'>;
  readonly #onChanges: (revisions: ReadonlyMap<string, number>) => void;
  readonly #loop: Loop;
  /** Null before the first look: what was committed earlier is in everything that is read from then on. */
  #next: string | null = null;
  /** On `performance.now()`: every change that was committed before is known. */
  confirmedAtMs = Number.NEGATIVE_INFINITY;

  /** @param onChanges gets the newest revisions of tenants, some of them again */
  constructor(db: Pick<Db, 'system'>, log: Logger, onChanges: (revisions: ReadonlyMap<string, number>) => void) {
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
    const [row] = await this.#db.system((tx) =>
      tx.query<{ next: string; revisions: Record<string, number> }>(CHANGES, [from], 'policy_changes'),
    );
    if (!row) throw new Error('the policy revisions gave no row');
    this.#next = row.next;
    this.#onChanges(new Map(Object.entries(row.revisions)));
    this.confirmedAtMs = startedAtMs;
  }
}
