import type { Db } from '../../../db/pool.js';
import type { MessageCore } from '../../../messages/core.js';
import { messageCore } from '../../setup/core.js';

/** Rejects the calls of a process that is dead. */
class Killed extends Error {}

/**
 * One process of the platform that can be killed. Its open transactions are then rolled back, and what it would have announced after a commit
 * is never announced.
 */
export class MortalProcess {
  readonly core: MessageCore;
  isDead = false;
  #commitsLeft: number;

  /** @param commits it dies after this many, before it announces the last */
  constructor(db: Db, commits = Number.POSITIVE_INFINITY) {
    this.#commitsLeft = commits;
    this.core = messageCore(this.#mortal(db));
  }

  #check(): void {
    if (this.isDead) throw new Killed();
  }

  async #committing<T>(work: () => Promise<T>): Promise<T> {
    this.#check();
    const result = await work();
    this.#commitsLeft -= 1;
    this.isDead ||= this.#commitsLeft <= 0;
    this.#check();
    return result;
  }

  #mortal(db: Db): Db {
    return {
      ...db,
      tenant: (tenantId, work) =>
        this.#committing(() =>
          db.tenant(tenantId, async (tx) => {
            const result = await work(tx);
            this.#check();
            return result;
          }),
        ),
      call: (...parameters) => this.#committing(() => db.call(...parameters)),
      batch: (...parameters) => this.#committing(() => db.batch(...parameters)),
    };
  }
}
