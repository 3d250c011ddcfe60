import { afterAll, onTestFinished, TestRunner } from 'vitest';

const TIMEOUT_MS = 240_000;

/**
 * Has this done after the running test or, at the top of a file or a `describe`, after its tests. It does nothing in `beforeAll`: what
 * that returns is called after its tests.
 */
export function cleanUp(work: () => unknown): void {
  const hook = TestRunner.getCurrentTest() ? onTestFinished : afterAll;
  hook(async () => void (await work()), TIMEOUT_MS);
}

/** Has this done once, whoever asks for it first. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}
