/** Rows of `npm run bench:fleet` in which something goes wrong while messages come at a steady rate. */
import { setTimeout as delay } from 'node:timers/promises';
import { startAgents, startCallers } from './rows.mjs';

const AWAY_MS = 3_300;
const AWAY = { type: 'away', count: 1, workMs: 6 };
const AWAY_PER_SECOND = 60;
const RESTARTED = { type: 'restarted', count: 1, workMs: 6 };
const RESTARTED_COUNT = 10;
const RESTARTED_PER_SECOND = 300;
/** From one agent's stop to the next one's. */
const TURN_MS = 3_000;
/** The default of ten sessions holds 33 such messages a second; the rest waits. */
const BROKEN = { type: 'broken', count: 2, broken: 1, workMs: 300 };
const BROKEN_LOAD = { perSecond: 50, ms: 4_000 };
/** Answers count as quick as before when a second's mean is below this multiple of the mean before. */
const AS_QUICK = 2;

const now = () => performance.timeOrigin + performance.now();
const failedOf = (calls) => calls.filter(({ problem }) => problem !== undefined);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The mean answer of each second in which calls started. */
function meansBySecond(calls) {
  const [{ startedAtMs: fromMs }] = [...calls].sort((a, b) => a.startedAtMs - b.startedAtMs);
  const seconds = [];
  for (const { startedAtMs, endedAtMs } of calls) {
    const second = Math.floor((startedAtMs - fromMs) / 1_000);
    seconds[second] = [...(seconds[second] ?? []), endedAtMs - startedAtMs];
  }
  return { fromMs, means: seconds.map(mean) };
}

/**
 * When answers are as quick again as before.
 * @param leftAtMs until when nothing had happened
 * @param backAtMs when all agents were back
 * @returns the lines of the report
 */
function recovery(calls, leftAtMs, backAtMs) {
  const { fromMs, means } = meansBySecond(calls);
  const second = (atMs) => (atMs - fromMs) / 1_000;
  const left = Math.floor(second(leftAtMs));
  const limit = AS_QUICK * mean(means.slice(Math.floor(left / 2), left)); // without the warm-up
  const slow = means.findLastIndex((ms) => ms > limit) + 1;
  const quickAgain = slow === means.length ? 'never' : `${Math.max(0, slow - second(backAtMs)).toFixed(1)} s after`;
  return [
    `leaves at ${second(leftAtMs).toFixed(1)} s, back at ${second(backAtMs).toFixed(1)} s; ${failedOf(calls).length} of ${calls.length} failed`,
    `answers below ${AS_QUICK} × the mean before: ${quickAgain}`,
    `mean answer in ms of each second: ${means.map((ms) => ms.toFixed(0)).join(' ')}`,
    ...example(calls),
  ];
}

/**
 * The only agent of a type is away for 3.3 s, stopped and started as in a deploy. The load goes on afterwards for twice the time of a row.
 * @returns the lines of the report
 */
export async function away(context) {
  const callers = await startCallers(context, AWAY.type);
  const agents = await startAgents(context, AWAY);
  const beforeMs = context.ms / 2;
  const load = callers.ask('steady', { perSecond: AWAY_PER_SECOND, ms: beforeMs + AWAY_MS + 2 * context.ms });
  await delay(beforeMs);
  const leftAtMs = now();
  await agents.stop();
  await delay(AWAY_MS);
  const next = await startAgents(context, AWAY);
  const backAtMs = now();
  const { calls } = await load;
  await next.stop();
  await callers.stop();
  return recovery(calls, leftAtMs, backAtMs);
}

/** Ten agents of a type are stopped and started in turns, as in a rolling deploy. @returns the lines of the report */
export async function restarts(context) {
  const callers = await startCallers(context, RESTARTED.type);
  const start = (first) => startAgents(context, { ...RESTARTED, first });
  const agents = await Promise.all(Array.from({ length: RESTARTED_COUNT }, (_, first) => start(first)));
  const ms = context.warmUpMs + RESTARTED_COUNT * TURN_MS + context.ms;
  const load = callers.ask('steady', { perSecond: RESTARTED_PER_SECOND, ms });
  await delay(context.warmUpMs);
  const leftAtMs = now();
  for (const [first, agent] of agents.entries()) {
    const turn = delay(TURN_MS);
    await agent.stop();
    agents[first] = await start(first);
    await turn;
  }
  const backAtMs = now();
  const { calls } = await load;
  for (const agent of agents) await agent.stop();
  await callers.stop();
  return recovery(calls, leftAtMs, backAtMs);
}

/** Two instances of a type, one of which always throws. @returns the lines of the report */
export async function broken(context) {
  const callers = await startCallers(context, BROKEN.type);
  const agents = await startAgents(context, BROKEN);
  const { calls } = await callers.ask('steady', BROKEN_LOAD);
  await agents.stop();
  await callers.stop();
  return [`${failedOf(calls).length} of ${calls.length} failed`, ...example(calls)];
}

const example = (calls) =>
  failedOf(calls)
    .slice(0, 1)
    .map(({ problem }) => `a failure: ${problem}`);
