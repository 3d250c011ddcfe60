// @module-tag once
// @module-tag once
import { expect, test } from 'vitest';
import { freePort } from '../../embedded/free-port.js';
import type { Behaviour, Dispatched } from '../setup/agent.js';
import { JournalingAgent, openSocket, registerAgent } from '../setup/platform/fleet.js';
import { startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';
import { Callers, expectEndedOnce, idsOf } from './callers.js';

/** Fixed, so that the agent finds the platform after a restart. */
const ports = { FLEET_API_PORT: String(await freePort()), FLEET_MESH_PORT: String(await freePort()) };
const { platform, database, startPeer } = await startPlatform(ports);
const { client } = platform;
const MESSAGES = 30;

/** What the agent has in hand until it may answer. */
const held: Dispatched[] = [];
let mayAnswer = false;
const work: Behaviour = (dispatch) => {
  if (mayAnswer) dispatch.result(`done: ${dispatch.text}`);
  else held.push(dispatch);
};
const options = { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0, keepsWork: true };
const agent = await new JournalingAgent(platform, options, work).start();

/** The agent answers what it has, and from now on at once. */
function answerAll(text: string): void {
  mayAnswer = true;
  for (const dispatch of held.splice(0)) dispatch.result(text);
}

test('kill -9 with messages in flight: each acknowledged one is on the record, ends once, and is given to an agent once', async () => {
  const callers = new Callers(client);
  const ids = idsOf('killed', MESSAGES);
  await callers.send(ids.slice(0, MESSAGES / 2));
  await until(() => held.length === MESSAGES / 2, { what: 'the dispatches' });
  const repeating = callers.repeat(ids); // those that are acknowledged must come back as the same tasks
  await platform.kill9();
  await repeating;
  await platform.start();
  answerAll('done after all');
  await callers.repeat(ids);
  await callers.send(ids);
  await expectEndedOnce(database, callers, [agent]);
}, 180_000);

test('SIGTERM: first /health of every port says 503, while calls are answered as ever and keep no connection', async () => {
  const peer = await startPeer({ env: { FLEET_API_PORT: '0', FLEET_MESH_PORT: '0', FLEET_STOP_DELAY_MS: '600000' } });
  const metricsUrl = await peer.metricsUrl();
  const { base_url, mesh_url } = peer.devJson();
  const urls = [base_url, mesh_url.replace('https', 'http'), metricsUrl].map((url) => new URL('/health', url));
  const statuses = () => Promise.all(urls.map(async (url) => (await fetch(url)).status));
  expect(await statuses()).toEqual([200, 200, 200]);
  process.kill(peer.pid, 'SIGTERM');
  await until(async () => (await statuses()).every((status) => status === 503), { what: '503 on every port' });
  const listed = await fetch(`${base_url}/agents/get`, {
    method: 'POST',
    headers: { ...(await peer.client.headers()), 'content-type': 'application/json' },
    body: '{}',
  });
  expect([listed.status, listed.headers.get('connection')]).toEqual([200, 'close']);
  expect(await (await fetch(`${base_url}/health`)).json()).toMatchObject({ status: 'stopping' });
  await peer.kill9();
}, 180_000);

test('SIGTERM under load: agents finish what they have, no new one comes, and nothing is lost', async () => {
  const callers = new Callers(client);
  mayAnswer = false;
  await callers.send(idsOf('drained', MESSAGES));
  await until(() => held.length === MESSAGES, { what: 'the dispatches' });
  await registerAgent(client, { instanceId: 'other-1', agentType: 'other' });
  const stopped = platform.stop();
  const isRefused = () =>
    openSocket(platform, 'other-1').then(
      () => false,
      () => true,
    );
  await until(isRefused, { what: 'a refused socket' });
  answerAll('finished');
  await stopped; // rejects unless it ends with 0
  await platform.start();
  for (const id of callers.acknowledged.values())
    expect(await client.message(id)).toMatchObject({ state: 'completed', assistant_output: 'finished' });
  await expectEndedOnce(database, callers, [agent]);
  await agent.stop();
}, 180_000);
