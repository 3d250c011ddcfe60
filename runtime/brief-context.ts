import type { AsyncLocalStorage } from 'node:async_hooks';

type Storage = Pick<AsyncLocalStorage<unknown>, 'disable'>;

/**
 * The storage of a library that keeps its context in `AsyncLocalStorage`, in use only while somebody is inside. Before Node 24 a storage
 * that was used once makes every promise of the process call a hook from then on, which is a sixth of what a message costs here.
 */
export class BriefContext {
  static readonly #all = new WeakMap<Storage, BriefContext>();
  readonly #storage: Storage;
  #inside = 0;

  private constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** The one of that storage. */
  static of(storage: Storage): BriefContext {
    const known = BriefContext.#all.get(storage) ?? new BriefContext(storage);
    BriefContext.#all.set(storage, known);
    return known;
  }

  /** @param work all of what needs the context */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#inside += 1;
    try {
      return await work();
    } finally {
      this.#inside -= 1;
      this.letGo();
    }
  }

  /** For who has used the storage by another door and needs it no more. */
  letGo(): void {
    if (this.#inside === 0) this.#storage.disable();
  }
}
