/**
 * A promise whose failure is passed on where nobody has awaited it by then: an unhandled rejection would end the process. Whoever awaits it, also
 * later, gets the failure as of any promise.
 */
export class AwaitedOrLogged<T> extends Promise<T> {
  /** `then` gives plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  #isAwaited = false;

  constructor(given: Promise<T>, onUnawaited: (error: unknown) => void) {
    super((resolve) => resolve(given));
    super.then(undefined, (error: unknown) => {
      if (!this.#isAwaited) onUnawaited(error);
    });
  }

  // biome-ignore lint/suspicious/noThenProperty: `await` calls it, because this is not a plain promise
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#isAwaited = true;
    return super.then(onFulfilled, onRejected);
  }
}
