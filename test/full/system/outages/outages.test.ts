// @module-tag once
import { expect, test } from 'vitest';
import { FUNCTION_SCHEMA } from '../../../../db/migrate.js';
import type { Behaviour } from '../../../setup/agent.js';
import { cleanUp } from '../../../setup/clean-up.js';
import type { RecordReader } from '../../../setup/histories/record-checker.js';
import { JournalingAgent } from '../../../setup/platform/fleet.js';
import { startBarePlatform } from '../../../setup/platform/platform.js';
import { allEnded, killEach } from '../../../setup/platform/process-tree.js';
import { randomFrom } from '../../../setup/seed.js';
import { until } from '../../../setup/until.js';
import { withClient } from '../../../setup/with-client.js';
import { Callers, expectEndedOnce, idsOf, notEnded } from '../../../system/callers.js';

const MESSAGES = 200;
const platform = await startBarePlatform({ QUEUE_WAIT_MS: '60000', RESUME_WINDOW_MS: '5000' });
const random = randomFrom();

/** How long an answer takes at most; long enough that most of what was sent is in flight when a server is killed. */
let slowestMs = 0;
/** Answers after a while; now and then it fails. */
const slow: Behaviour = (dispatch) => {
  const fails = random() < 0.1;
  const answer = () => (fails ? dispatch.error('HANDLER_ERROR') : dispatch.result(`done: ${dispatch.text}`));
  setTimeout(answer, 20 + random() * slowestMs);
};

/** Reads the platform's own Postgres, which is another one after each restart. */
const reader: RecordReader = {
  query: (text, values) => {
    const options = `-c search_path=${FUNCTION_SCHEMA},public`;
    const config = { connectionString: platform.devJson().database_url, options };
    return withClient(config, async (client) => (await client.query(text, values)).rows);
  },
};

async function healthy(): Promise<void> {
  const isReady = async () => platform.ended ?? (await platform.client.get('/health?ready=full')).status === 200;
  await until(isReady, { timeoutMs: 90_000, what: 'health' });
  if (platform.ended) throw new Error(`the platform ended: ${platform.ended}\n${platform.log().slice(-4_000)}`);
}

const join = (instanceId: string) =>
  new JournalingAgent(platform, { instanceId, agentType: 'worker', maxConcurrentSessions: 0 }, slow).start();
const agents = await Promise.all(['worker-1', 'worker-2', 'worker-3'].map(join));
cleanUp(() => Promise.all(agents.map((agent) => agent.stop())));

test('kill -9 of the whole process tree, twice, with 200 messages in flight: each acknowledged one ends once', async () => {
  const callers = new Callers(platform.client);
  const rounds = ['first', 'second'].map((round) => idsOf(round, MESSAGES));
  slowestMs = 12_000;
  for (const ids of rounds) {
    const before = callers.acknowledged.size;
    const enough = () => callers.acknowledged.size - before >= MESSAGES / 2;
    const sending = callers.send(ids, enough);
    await until(enough, { timeoutMs: 120_000, what: 'enough acknowledged messages' });
    expect(await notEnded(reader)).toBeGreaterThan(MESSAGES * 0.25);
    await platform.kill9();
    await sending;
    await platform.start();
  }
  await callers.repeat(rounds.flat()); // the acknowledged ones too: they must come back as the same tasks
  await callers.send(rounds.flat());
  await expectEndedOnce(reader, callers, agents);
}, 400_000);

test.each([
  ['Temporal', /temporal.* server start-dev/],
  ['Postgres', /postgres.* -D /],
])(
  'kill -9 of %s alone: callers are told to repeat, it comes back by itself and nothing is lost',
  async (name, command) => {
    const callers = new Callers(platform.client);
    const ids = idsOf(name, 120);
    const [server] = await platform.children(command);
    if (!server) throw new Error(`${name} does not run below the platform`);
    const sending = callers.repeat(ids);
    await until(() => callers.acknowledged.size >= 15);
    killEach([server]);
    await allEnded([server]);
    await sending;
    await healthy();
    expect(platform.ended).toBeUndefined();
    await callers.send(ids);
    await expectEndedOnce(reader, callers, agents);
  },
  300_000,
);
