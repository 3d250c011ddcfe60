/**
 * `npm run demo`: the specification's typical flow, step by step. Uses the platform that is running; where none is, starts one
 * and stops it at the end. A platform that the demo did not start is never stopped: for the restart it has one beside it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OwnPlatform } from './demo/own-platform.js';
import {
  agentsReady,
  askForRisk,
  askLibrarian,
  connect,
  openSession,
  resolveMessage,
  sendMessage,
  showEvents,
  showPending,
  showTemporal,
  showToken,
  streamMessage,
  type Visit,
} from './demo/steps.js';
import { Story } from './demo/story.js';
import { type DevFile, dataDir, readDevFile } from './platform-access.js';

/** A second platform shares nothing with the first: servers and ports of its own. */
const NOT_SHARED = [
  'DATABASE_URL',
  'TEMPORAL_ADDRESS',
  'REDIS_URL',
  'FLEET_BASE_URL',
  'FLEET_MESH_URL',
  'FLEET_SECRET_KEY',
];
const FREE_PORTS = { FLEET_API_PORT: '0', FLEET_MESH_PORT: '0', FLEET_METRICS_PORT: '0', FLEET_EXAMPLES: 'on' };

const FAILED = 1;

const story = new Story();
const cleanUps: (() => Promise<void>)[] = [];

async function runningPlatform(directory: string): Promise<DevFile | null> {
  const dev = await readDevFile(directory);
  if (!dev) return null;
  const health = await fetch(`${dev.base_url}/health`).catch(() => null); // left behind by a platform that was killed
  return health?.ok ? dev : null;
}

/** Visits a platform; at the end nothing of the visit holds it up. */
async function enter(dev: DevFile): Promise<Visit> {
  const place = await connect(dev);
  cleanUps.unshift(async () => place.client.destroy());
  await agentsReady(place);
  return place;
}

function ownPlatform(directory: string, environment: NodeJS.ProcessEnv): OwnPlatform {
  const platform = new OwnPlatform(directory, environment, (line) => story.say(`| ${line}`));
  cleanUps.unshift(async () => {
    await platform.close();
    if (process.exitCode === FAILED) process.stderr.write(`${platform.lastLines.join('\n')}\n`);
  });
  return platform;
}

async function everydaySteps(place: Visit): Promise<{ sessionId: string; messageId: string }> {
  await showToken(place, story);
  const sessionId = await openSession(place, story);
  await sendMessage(place, story, sessionId);
  await streamMessage(place, story, sessionId);
  await askLibrarian(place, story);
  return { sessionId, messageId: await askForRisk(place, story, sessionId) };
}

/** Stops the platform while the message waits, starts it again, and finds the message as it was. */
async function restart(platform: OwnPlatform, place: Visit, messageId: string): Promise<Visit> {
  story.step('The platform stops while the message waits, and starts again');
  place.client.close();
  await platform.stop();
  story.say('stopped: API, mesh, worker, agents, Temporal and Postgres');
  const startedAt = Date.now();
  const again = await enter(await platform.start());
  story.say(`ready again after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  await showPending(again, story, messageId);
  return again;
}

/** No platform is running: everything happens on one of the demo's own, whose data stay for `npm start`. */
async function onOwnPlatform(directory: string): Promise<void> {
  story.title('The agent fleet, step by step');
  story.say('No platform is running here, so this demo starts one and stops it at the end.');
  const platform = ownPlatform(directory, { ...process.env, FLEET_EXAMPLES: 'on' });
  const first = await enter(await platform.start());
  const { sessionId, messageId } = await everydaySteps(first);
  const second = await restart(platform, first, messageId);
  await resolveMessage(second, story, messageId);
  await showEvents(second, story, sessionId);
  showTemporal(second, story, messageId, false);
  second.client.close();
}

/** A platform is running: the flow happens there, and the restart on a second one in a temporary directory. */
async function besideRunningPlatform(dev: DevFile): Promise<void> {
  story.title('The agent fleet, step by step');
  story.say(`On the platform that is running at ${dev.base_url}.`);
  const place = await enter(dev);
  const { sessionId, messageId } = await everydaySteps(place);
  await resolveMessage(place, story, messageId);
  await showEvents(place, story, sessionId);
  showTemporal(place, story, messageId, true);
  place.client.close();

  story.title('The same wait, with a restart in the middle');
  story.say('Your platform is left alone: a second one is started beside it, and removed afterwards.');
  const directory = await mkdtemp(join(tmpdir(), 'fleet-demo-'));
  cleanUps.unshift(() => rm(directory, { recursive: true, force: true }));
  const shared = Object.entries(process.env).filter(([name]) => !NOT_SHARED.includes(name));
  const platform = ownPlatform(directory, { ...Object.fromEntries(shared), ...FREE_PORTS });
  const first = await enter(await platform.start());
  const waiting = await askForRisk(first, story, await openSession(first, story));
  const second = await restart(platform, first, waiting);
  await resolveMessage(second, story, waiting);
  second.client.close();
}

let isCleaning = false;
async function finish(exitCode: number): Promise<void> {
  if (isCleaning) return;
  isCleaning = true;
  process.exitCode = exitCode;
  for (const cleanUp of cleanUps) await cleanUp();
  process.exit(exitCode);
}

async function main(): Promise<void> {
  const directory = dataDir(process.env);
  const running = await runningPlatform(directory);
  if (running) await besideRunningPlatform(running);
  else await onOwnPlatform(directory);
  story.title('That was the whole flow.');
}

process.once('SIGINT', () => void finish(130));
process.once('SIGTERM', () => void finish(143));
main().then(
  () => finish(0),
  (error: unknown) => {
    if (isCleaning) return;
    process.stderr.write(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
    return finish(FAILED);
  },
);
