/**
 * How long events take from their commit to a stream, and how many a second the sequencer and a consumer of all events handle (docs/performance.md).
 *
 *     npm run bench:events -- [--seconds N] [--rate EVENTS_PER_SECOND] [--events N]
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { openDb } from '../dist/db/pool.js';
import { newEventId } from '../dist/runtime/ids.js';
import { createLogger } from '../dist/runtime/logger.js';
import { consumeEvents } from '../dist/telemetry/event-reader.js';
import { connectDatabase } from './harness/database.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

/** As a quick message writes: three with its acceptance, two with its end. */
const EVENTS_PER_TRANSACTION = 3;
const CONSUMED_AT_ONCE = 500;
const INSERT = `
  INSERT INTO event_groups (tenant_id, types, instance_mark, group_id, events)
    SELECT uuid_of($1), event_bit('dispatch.success'), instance_mark('bench'), substr(id, 5)::uuid,
           '[{"dispatch_id": "dsp_bench", "instance_id": "bench", "duration_ms": 1}]'
      FROM unnest($2::text[]) AS id`;

const { values: given } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '500' },
    events: { type: 'string', default: '20000' },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const ids = (count) => Array.from({ length: count }, () => newEventId());

/** Follows the tenant's events. @returns the moment of each arrival by event id, and the end of the stream */
async function follow({ dev, token }) {
  const arrivals = new Map();
  const leaving = new AbortController();
  const response = await fetch(`${dev.base_url}/telemetry/stream_events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    signal: leaving.signal,
  });
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const done = (async () => {
    for await (const { id } of events) arrivals.set(id, performance.now());
  })().catch((error) => {
    if (!leaving.signal.aborted) throw error;
  });
  const leave = () => {
    leaving.abort();
    return done;
  };
  return { arrivals, leave };
}

/** Writes at a steady rate. @returns the moment at which each event was committed, by id */
async function writeSteadily(client, tenantId, rate, seconds) {
  const commits = new Map();
  const pauseMs = (1_000 * EVENTS_PER_TRANSACTION) / rate;
  const startMs = performance.now();
  for (let sent = 0; performance.now() - startMs < seconds * 1_000; sent += 1) {
    const written = ids(EVENTS_PER_TRANSACTION);
    await client.query({ name: 'write', text: INSERT, values: [tenantId, written] });
    const nowMs = performance.now();
    for (const id of written) commits.set(id, nowMs);
    await delay(Math.max(0, startMs + (sent + 1) * pauseMs - nowMs));
  }
  return commits;
}

async function measureLag(platform, client) {
  const { arrivals, leave } = await follow(platform);
  await writeSteadily(client, platform.dev.tenant_id, Number(given.rate), 3); // warm-up
  const commits = await writeSteadily(client, platform.dev.tenant_id, Number(given.rate), Number(given.seconds));
  while ([...commits.keys()].some((id) => !arrivals.has(id))) await delay(20);
  await leave();
  const lags = [...commits].map(([id, atMs]) => arrivals.get(id) - atMs);
  return [0.5, 0.95, 0.99, 1].map((share) => quantile(lags, share).toFixed(0));
}

/** Waits until every committed event has a position, which the platform's own sequencer gives. @returns the newest position */
async function settledHead(client, from, count) {
  for (;;) {
    const { rows } = await client.query('SELECT max(last_position)::bigint * 256 + 255 AS head FROM event_batches');
    const head = Number(rows[0].head);
    if (head >= from + count) return head;
    await delay(5);
  }
}

/** How many events a second get positions after a burst, and how many a consumer reads. */
async function measureRates({ dev }, client) {
  const db = openDb({ url: dev.database_url, log: createLogger({ level: 'warn' }) });
  const count = Number(given.events);
  const consumer = { consumer: 'bench', limit: CONSUMED_AT_ONCE };
  const ignore = async (_tx, events) => events.length;
  const from = await settledHead(client, 0, 0);
  await consumeEvents(db, consumer, ignore); // joins
  await client.query('BEGIN');
  for (let written = 0; written < count; written += 1_000)
    await client.query({ name: 'write', text: INSERT, values: [dev.tenant_id, ids(Math.min(1_000, count - written))] });
  await client.query('COMMIT');
  const perSecond = (sinceMs) => Math.round((count * 1_000) / (performance.now() - sinceMs));
  const committedMs = performance.now();
  await settledHead(client, from, count);
  const positioned = perSecond(committedMs);
  const startMs = performance.now();
  for (let done = 0; done < count; ) done += (await consumeEvents(db, consumer, ignore)) ?? 0;
  const consumed = perSecond(startMs);
  await db.close();
  return { positioned, consumed };
}

async function main(harness) {
  const platform = await harness.platform('events', {});
  const client = await connectDatabase(platform.dev.database_url);
  const lag = await measureLag(platform, client);
  const { positioned, consumed } = await measureRates(platform, client);
  await client.end();
  print(machineLine());
  print('');
  const name = `commit to stream at ${given.rate} events/s (ms)`;
  print(markdownTable(['', 'p50', 'p95', 'p99', 'most'], [[name, ...lag]]));
  print('');
  print(`positions given: ${positioned} events/s; read by a consumer of all events: ${consumed} events/s`);
  return 0;
}

process.exitCode = await Harness.run(main);
