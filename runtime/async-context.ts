import type { AsyncLocalStorage } from 'node:async_hooks';

type Storage = Pick<AsyncLocalStorage<unknown>, 'disable'>;

/** The first Node whose `AsyncLocalStorage` needs no hook on promises. */
const NODE_WITHOUT_HOOKS = 24;

/**
 * A library's `AsyncLocalStorage`, disabled while no call needs it. Before Node 24 a storage that was used once makes every promise of the
 * process call a hook, which is a sixth of what a message costs here. Disabling it holds for the whole process: a call that is under way
 * finds no context from then on. So an activity calls `Context.current()` before it first awaits, and keeps the result. From Node 24 on
 * nothing is disabled.
 */
export class AsyncContext {
  static readonly #all = new WeakMap<Storage, AsyncContext>();
  #calls = 0;

  private constructor(
    private readonly storage: Storage,
    private readonly disables: boolean,
  ) {}

  /** The one of that storage. */
  static of(storage: Storage, nodeVersion = process.versions.node): AsyncContext {
    const disables = Number.parseInt(nodeVersion, 10) < NODE_WITHOUT_HOOKS;
    const known = AsyncContext.#all.get(storage) ?? new AsyncContext(storage, disables);
    AsyncContext.#all.set(storage, known);
    return known;
  }

  /** @param work all of what needs the context */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#calls += 1;
    try {
      return await work();
    } finally {
      this.#calls -= 1;
      this.release();
    }
  }

  /** Disables the storage unless a `run` is under way. For code that used it otherwise and no longer needs it. */
  release(): void {
    if (this.disables && this.#calls === 0) this.storage.disable();
  }
}
