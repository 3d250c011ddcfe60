import { DefaultLogger, IllegalStateError, Runtime } from '@temporalio/worker';

/** Has Temporal's SDK print errors only. A process has one runtime: that of an earlier test file of the same process stays. */
export function quietRuntime(): void {
  try {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
  } catch (error) {
    if (!(error instanceof IllegalStateError)) throw error;
  }
}
