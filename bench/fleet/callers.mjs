/** The callers of a row in one process. A failed call is noted and stops nobody, for a busy platform may refuse some. */
import { setTimeout as delay } from 'node:timers/promises';
import { Caller } from '../harness/caller.mjs';
import { serve } from '../harness/child-process.mjs';
import { SteadyRate } from '../harness/cluster/pace.mjs';
import { measured } from '../harness/measure.mjs';
import { jobCaller } from './jobs.mjs';

/** Characters from the end of an answer, where it says why it failed. */
const PROBLEM_LENGTH = 200;

/** Milliseconds that other processes of this machine understand. */
const now = () => performance.timeOrigin + performance.now();

/** Makes a call that never rejects and notes how it ended. */
function noted(call, calls) {
  return async () => {
    const startedAtMs = now();
    const problem = await call().then(
      () => undefined,
      (error) => error.message.slice(-PROBLEM_LENGTH),
    );
    calls.push({ startedAtMs, endedAtMs: now(), problem });
  };
}

/** Callers that each wait for their answer before they call again. Their first calls are spread over `spreadMs`, or they would all come in waves. */
async function closedLoop(call, { width, spreadMs, rampMs, ms }) {
  const calls = [];
  const fromMs = now() + rampMs;
  const one = noted(call, calls);
  let started = 0;
  const work = async () => {
    const index = started++;
    if (index < width) await delay((index * spreadMs) / width);
    await one();
  };
  await measured(work).throughput({ width, rampMs, ms });
  return { calls, fromMs };
}

/** Calls that do not wait for each other. */
async function steady(call, { perSecond, ms }) {
  const calls = [];
  await new SteadyRate().run(perSecond, performance.now() + ms, noted(call, calls));
  return { calls };
}

/** @param {{ platform?: { url: string, token: string, agentType: string }, jobsUrl?: string, connections?: number }} options */
serve(async ({ platform, jobsUrl, connections }) => {
  const call = platform
    ? new Caller(platform.url, platform.token, connections).send(platform.agentType)
    : await jobCaller(jobsUrl);
  return {
    commands: { closedLoop: (options) => closedLoop(call, options), steady: (options) => steady(call, options) },
  };
});
