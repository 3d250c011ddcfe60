import { relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { echo } from '../../setup/agent.js';
import { CallCounts, type CalledFunction } from '../../setup/platform/call-counts.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { FAST_PATH } from '../../setup/platform/paths.js';
import { startPlatform } from '../../setup/platform/platform.js';

const DIST = fileURLToPath(new URL('../../../dist/', import.meta.url));
/** A reader follows one message through at most this many files. */
const FILES_MAX = 25;
/** Constants and schemas are not counted, nor what runs before the route does: parsing the request and its token. */
const NOT_COUNTED = /^(contracts|auth|api\/plugins)\/|^api\/app\.js$/;
const SENDS = 40;
/** What each request calls is called this often beyond what timers call in the same time. */
const CALLS_MIN = SENDS * 0.75;
/** A slow machine's timers may go off at each request, for what requests left to them: the files of a request are in every round. */
const ROUNDS_MAX = 5;

/** Keeps events from getting positions, so that nobody reads them meanwhile: that comes after the message, at a time of its own. */
async function holdEvents(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("SELECT pg_advisory_lock(hashtextextended('position_events', 0))");
}

const placeOf = ({ url, place }: CalledFunction) => `${url} ${place}`;

/** The functions that each request of `sendAll` calls, by their files. */
async function filesOf(counts: CallCounts, sendAll: () => Promise<void>): Promise<Map<string, string>> {
  await counts.take();
  const startedAtMs = performance.now();
  await sendAll();
  const called = await counts.take();
  await delay(performance.now() - startedAtMs); // what timers call in that time, however slow the machine is
  const byTimers = new Map((await counts.take()).map((called) => [placeOf(called), called.count]));
  const ofRequests = called.filter((one) => one.count - (byTimers.get(placeOf(one)) ?? 0) >= CALLS_MIN);
  const files = new Map<string, string>();
  for (const { url, name } of ofRequests) {
    const path = url.startsWith('file:') ? relative(DIST, fileURLToPath(url)) : '..';
    if (path.startsWith('..') || NOT_COUNTED.test(path)) continue;
    const names = files.get(path);
    files.set(path, names ? `${names}, ${name}` : name);
  }
  return files;
}

test(`one message on the fast path runs through at most ${FILES_MAX} files`, async () => {
  const shared = await startPlatform({ ...FAST_PATH.env, NODE_OPTIONS: '--inspect=127.0.0.1:0' });
  onTestFinished(shared.dispose);
  const { client } = shared.platform;
  await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
  const { session_id } = await client.ok('/sessions/init', { instance_id: 'echo-1' }, SessionInitResponse);
  await holdEvents(shared.database.url);
  const sendAll = async () => {
    for (let sent = 0; sent < SENDS; sent += 1) {
      const { status } = await client.send(`hello ${sent}`, { contextId: session_id });
      expect(status.state).toBe('completed');
    }
  };
  const counts = await CallCounts.of(shared.platform.log());
  onTestFinished(() => counts.close());
  await sendAll();
  let files = await filesOf(counts, sendAll);
  for (let round = 1; round < ROUNDS_MAX && files.size > FILES_MAX; round += 1) {
    const again = await filesOf(counts, sendAll);
    files = new Map([...files].filter(([path]) => again.has(path)));
  }
  const list = [...files]
    .map(([path, names]) => `${path}: ${names}`)
    .sort()
    .join('\n');
  expect(list).toMatch(/^messages\/.*acceptMessage/m);
  expect(files.size, `functions that each request calls, by file:\n${list}\n`).toBeLessThanOrEqual(FILES_MAX);
});
