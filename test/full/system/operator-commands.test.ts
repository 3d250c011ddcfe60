import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { AlertRule } from '../../../contracts/api/alerts.js';
import { PolicyResponse } from '../../../contracts/api/policies/policies.js';
import type { ErasureReport } from '../../../erasure/erasures.js';
import { operatorWith, tablesWith } from '../../erasure/eraser-fixture.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { createPlan, newSession, step } from '../../plans/plan-fixture.js';
import { cleanUp } from '../../setup/clean-up.js';
import { ApiClient } from '../../setup/platform/api-client.js';
import { joinAgent, registerAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { receiver } from '../../setup/receiver.js';
import { until } from '../../setup/until.js';
import { to } from '../../system/fixture.js';

/** Workflows and deliveries of a deleted tenant have half a minute to end by themselves. */
const TIMEOUT_MS = 360_000;
const redis = await redisServer();
/** The key is that of the data directory, for the commands. */
const shared = await startPlatform({ FLEET_SECRET_KEY: '', REDIS_URL: redis.url });
const { platform, database, temporal } = shared;
const fleet = operatorWith({ FLEET_DATA_DIR: platform.dataDir, DATABASE_URL: database.url });

/** Files of the data directory with a text: the logs have ids, and no content. */
function filesWith(text: string): string[] {
  const files = readdirSync(platform.dataDir, { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile() && !/\.(log|out)$/.test(file.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => readFileSync(path, 'latin1').includes(text));
}

const commands = new Redis(redis.url);
cleanUp(() => commands.disconnect());
/** The keys of Redis that name one of these. */
const keysWith = async (...names: string[]) =>
  (await commands.keys('*')).filter((key) => names.some((name) => key.includes(name)));

test('an erased message and an erased session leave nothing in Redis, what is beside them stays, and the reports count it', async () => {
  const { client } = platform;
  await joinAgent(platform, { instanceId: 'streamer-1', agentType: 'streamer' }, (dispatch) => {
    dispatch.chunk(0, 'one ');
    dispatch.result('one answer');
  });
  const streamed = async (text: string, contextId?: string) => {
    const params = { metadata: { agent_type: 'streamer' }, ...(contextId && { contextId }) };
    let task: { id: string; contextId: string } | undefined;
    for await (const event of client.stream(text, params)) if (event.kind === 'task') task = event;
    if (!task) throw new Error('the stream had no task');
    return task;
  };
  const first = await streamed('first');
  const second = await streamed('second', first.contextId);
  const elsewhere = await streamed('elsewhere');
  const ids = [first.id, second.id, elsewhere.id];
  for (const id of ids) expect(await keysWith(id)).toHaveLength(1);
  const erase = (...args: string[]) => fleet(...args, '--tenant', platform.devJson().tenant_id);

  const ofMessage = await erase('messages', 'erase', '--message', first.id);
  expect(ofMessage).toMatchObject({ finished_at: expect.any(String), removed: { messages: 1, redis_keys: 1 } });
  expect(await keysWith(...ids)).toHaveLength(2);
  expect(await keysWith(first.id)).toEqual([]);
  const ofSession = await erase('sessions', 'erase', '--session', first.contextId);
  expect(ofSession).toMatchObject({ removed: { sessions: 1, messages: 1, redis_keys: 1 } });
  expect(await keysWith(first.id, second.id, first.contextId)).toEqual([]);
  expect(await keysWith(elsewhere.id)).toHaveLength(1);
});

test(
  'a deleted tenant leaves nothing in tables, workflows, Redis, and files',
  async () => {
    const { tenant_id: tenantId } = await fleet<{ tenant_id: string }>('tenants', 'create', 'to be deleted');
    const uuid = tenantId.slice('ten_'.length);
    const named = ['--tenant', tenantId, '--name', 'all', '--scopes', 'full', '--agent-types', '*'];
    const credential = await fleet<{ client_id: string; client_secret: string }>('credentials', 'create', ...named);
    const client = new ApiClient(platform, credential);
    const home = { client, devJson: () => platform.devJson() };
    const webhook = await receiver();
    await joinAgent(home, { instanceId: 'writer-1', agentType: 'writer' }, (dispatch) => {
      dispatch.chunk(0, 'confidential ');
      if (dispatch.text === 'ask') dispatch.ask({ kind: 'confirmation', title: 'Really confidential?' });
      else dispatch.result('confidential answer');
    });
    await registerAgent(client, { instanceId: 'late-1', agentType: 'late' });
    const rule = { name: 'ends', condition: { event: 'message.completed', filters: {} } };
    const notifications = [{ type: 'webhook', config: { url: webhook.url } }];
    await client.ok('/policies/new_alert', { ...rule, notifications }, AlertRule);
    const policy = { scope: 'tool', name: 'payments', decision: 'require_approval', match: { tools: ['pay'] } };
    await client.ok('/policies/create_policy', policy, PolicyResponse);
    const session = await newSession(client, { user_id: 'confidential@example.org' });
    for await (const _ of client.stream('confidential question', to('writer')));
    await client.send('in a session', { ...to('writer'), contextId: session });
    const asking = await client.send('ask', { ...to('writer'), pushNotificationConfig: { url: webhook.url } });
    expect(asking.status.state).toBe('input-required');
    await client.send('waits for its agent', { ...to('late'), blocking: false });
    await createPlan(client, [step('confidential-step', 'late', 'later')]);
    await until(() => webhook.arrived.length >= 3, { what: 'deliveries' });
    const keys = () => keysWith(tenantId, uuid);
    const workflows = async () => (await temporal.workflow.count(`FleetTenant = "${tenantId}"`)).count;
    await until(async () => (await workflows()) > 0, { what: 'workflows' });
    expect(await keys()).not.toEqual([]);
    expect((await tablesWith(database, 'confidential')).length).toBeGreaterThan(3);

    const { erasure } = await fleet<{ erasure: ErasureReport }>('tenants', 'delete', tenantId, '--wait-seconds', '300');
    expect(erasure).toMatchObject({
      finished_at: expect.any(String),
      removed: { tenants: 1, sessions: expect.any(Number) },
    });
    expect(erasure.removed.workflows).toBeGreaterThan(0);
    expect(await tablesWith(database, uuid)).toEqual(['decision_outcomes', 'erasures', 'input_decisions']); // the report, and who decided when
    for (const text of ['confidential', 'example.org', webhook.url])
      expect(await tablesWith(database, text)).toEqual([]);
    expect(await keys()).toEqual([]);
    await until(async () => (await workflows()) === 0, { what: 'the end of the workflows' });
    expect([...filesWith(uuid), ...filesWith('confidential')]).toEqual([]);
    expect((await client.post('/agents/get', {})).status).toBe(401);
  },
  TIMEOUT_MS,
);

test('the secret key is rotated while the platform runs, and its clients notice nothing', async () => {
  const { client } = platform;
  const { client_id, client_secret } = platform.devJson();
  const keyFile = join(platform.dataDir, 'secret.key');
  const before = readFileSync(keyFile, 'utf8');
  const login = async () => (await client.post('/auth/get_token', { client_id, client_secret })).status;
  const keyId = async () =>
    (await database.query('SELECT secret_key_id FROM credentials WHERE credential_id = $1', [client_id]))[0]
      ?.secret_key_id;
  const old = await keyId();
  const rotated = fleet<{ sealed_anew: Record<string, number>; credentials_left: number }>('keys', 'rotate-secret');
  await until(async () => (await login()) === 200 && (await keyId()) !== old, { what: 'the secret to be hashed anew' });
  const report = await rotated;
  expect(report.sealed_anew).toMatchObject({ signing_keys: 2 });
  expect(report.credentials_left).toBe(1); // that of the agents, which has not been used
  expect(readFileSync(`${keyFile}.previous`, 'utf8')).toBe(before);
  expect(readFileSync(keyFile, 'utf8')).not.toBe(before);
  expect((await client.post('/agents/get', {})).status).toBe(200);
});
