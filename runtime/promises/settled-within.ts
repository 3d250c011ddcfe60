/** The result of `work`, or null when it takes longer than `waitMs`. `work` must not reject. */
export function settledWithin<T>(work: Promise<T>, waitMs: number): Promise<T | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), waitMs);
    void work.then((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
