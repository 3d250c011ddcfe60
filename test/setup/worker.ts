import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { cleanUp } from './clean-up.js';
import { quietRuntime } from './quiet-runtime.js';

const BUNDLE = fileURLToPath(new URL('../../dist/workflows.bundle.js', import.meta.url));

/** Runs a worker with the platform's workflows, until the end of the test or the file. */
export async function runWorker(options: WorkerOptions): Promise<void> {
  quietRuntime();
  const worker = await Worker.create({ workflowBundle: { codePath: BUNDLE }, ...options });
  const running = worker.run();
  cleanUp(() => {
    worker.shutdown();
    return running;
  });
}
