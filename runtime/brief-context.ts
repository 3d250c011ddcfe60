import type { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The storage of a library that keeps its context in `AsyncLocalStorage`, in use only while somebody is inside. Before Node 24 a storage
 * that was used once makes every promise of the process call a hook from then on, which is a sixth of what a message costs here.
 */
export class BriefContext {
  readonly #storage: Pick<AsyncLocalStorage<unknown>, 'disable'>;
  #inside = 0;

  constructor(storage: Pick<AsyncLocalStorage<unknown>, 'disable'>) {
    this.#storage = storage;
  }

  /** @param work all of what needs the context */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#inside += 1;
    try {
      return await work();
    } finally {
      this.#inside -= 1;
      if (this.#inside === 0) this.#storage.disable();
    }
  }
}
