import { afterAll, onTestFinished, TestRunner } from 'vitest';

const TIMEOUT_MS = 240_000;

/** Has this done when the running test is over; where none runs (at the top of a file), after all tests of the file. */
export function cleanUp(work: () => unknown): void {
  const hook = TestRunner.getCurrentTest() ? onTestFinished : afterAll;
  hook(async () => void (await work()), TIMEOUT_MS);
}
