/** The anchor's jobs on graphile-worker, and callers that wait for their end by LISTEN/NOTIFY. */
import { randomUUID } from 'node:crypto';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { POOL_MAX } from '../harness/platform.mjs';

const TASK = 'work';
const CHANNEL = 'job_ended';

const logger = new Logger(() => () => undefined);
const warn = (error) => process.stderr.write(`anchor: ${error.message}\n`);

function poolOf(databaseUrl) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL_MAX });
  return pool.on('error', warn).on('connect', (client) => client.on('error', warn));
}

/** Starts a worker with room for `concurrency` jobs, which notifies when a job has ended in the record. */
export async function runJobs(databaseUrl, concurrency, handle) {
  const pgPool = poolOf(databaseUrl);
  const taskList = { [TASK]: handle };
  const { events } = await run({ pgPool, logger, concurrency, noHandleSignals: true, taskList });
  events.on('job:complete', ({ job }) => void pgPool.query('SELECT pg_notify($1, $2)', [CHANNEL, job.payload.key]));
}

/** @returns a function that adds a job and resolves at its end */
export async function jobCaller(databaseUrl) {
  const waiting = new Map();
  const listener = new pg.Client({ connectionString: databaseUrl });
  await listener.connect();
  listener.on('notification', ({ payload: key }) => {
    waiting.get(key)();
    waiting.delete(key);
  });
  await listener.query(`LISTEN ${CHANNEL}`);
  const utils = await makeWorkerUtils({ pgPool: poolOf(databaseUrl), logger });
  return async () => {
    const key = randomUUID();
    const ended = new Promise((resolve) => waiting.set(key, resolve));
    await utils.addJob(TASK, { key });
    await ended;
  };
}
