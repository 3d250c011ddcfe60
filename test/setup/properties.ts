import fc from 'fast-check';

interface PropertyRuns<Values> {
  runs: number;
  seed: number;
  /** Tried before the generated ones. */
  examples?: [Values][];
}

/**
 * Expects an asynchronous property to hold, of real time and real servers: what failed first is what counts, because a run with smaller values
 * may fail for another reason, or not at all. @throws an Error whose first line says why, with the seed and the values after it
 */
export async function expectProperty<Values>(
  property: fc.IAsyncProperty<[Values]>,
  { runs, seed, examples = [] }: PropertyRuns<Values>,
): Promise<void> {
  const found = await fc.check(property, { numRuns: runs, seed, examples, endOnFailure: true });
  if (!found.failed) return;
  const { counterexample, errorInstance: cause, numRuns } = found;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const values = counterexample ? fc.stringify(counterexample[0]) : 'none';
  throw new Error(`${reason}\nin run ${numRuns} of TEST_SEED=${seed}, with ${values}`, { cause });
}
