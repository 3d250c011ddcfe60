/** The anchor's worker in a process of its own. */
import { serve } from '../harness/child-process.mjs';
import { runJobs } from './jobs.mjs';
import { Work } from './work.mjs';

/** @param {{ jobsUrl: string, count: number, workMs: number }} options */
serve(async ({ jobsUrl, count, workMs }) => {
  const work = new Work(workMs);
  await runJobs(jobsUrl, count, () => work.handle());
  return { commands: { forget: work.forget, handlingMs: work.handlingMs } };
});
