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
  #dead = false;
  #commitsLeft: number;

  /** @param commits it dies after this many, before it announces the last */
  constructor(db: Db, commits = Number.POSITIVE_INFINITY) {
    this.#commitsLeft = commits;
    this.core = messageCore(this.#mortal(db));
  }

  get isDead(): boolean {
    return this.#dead;
  }

  kill(): void {
    this.#dead = true;
  }

  #check(): void {
    if (this.#dead) throw new Killed();
  }

  async #committed<T>(work: Promise<T>): Promise<T> {
    const result = await work;
    this.#commitsLeft -= 1;
    if (this.#commitsLeft <= 0) this.kill();
    this.#check();
    return result;
  }

  #mortal(db: Db): Db {
    return {
      ...db,
      tenant: async (tenantId, work) => {
        this.#check();
        const mortal: typeof work = async (tx) => {
          const result = await work(tx);
          this.#check();
          return result;
        };
        return this.#committed(db.tenant(tenantId, mortal));
      },
      call: async (...parameters: Parameters<Db['call']>) => {
        this.#check();
        return this.#committed(db.call(...parameters)) as never;
      },
      batch: async (statement, call) => {
        this.#check();
        return this.#committed(db.batch(statement, call));
      },
    };
  }
}
