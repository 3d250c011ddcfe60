import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { AgentConnectionResponse } from '../../contracts/api/agents.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { SessionGetByIdResponse, SessionInitResponse } from '../../contracts/api/sessions.js';
import { echo } from '../setup/agent.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

const CLI = new URL('../../dist/cli/fleet.js', import.meta.url).pathname;
let shared: SharedPlatform;

beforeAll(async () => {
  shared = await startPlatform({ FLEET_SECRET_KEY: '' }); // the key of the data directory
  await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo' }, echo);
  await joinAgent(shared.platform, { instanceId: 'asking-1', agentType: 'asking' }, (dispatch) =>
    dispatch.ask({ kind: 'confirmation', title: 'Really?', prompt: 'private question' }),
  );
  return shared.dispose;
});

interface Report {
  erasure_id: string;
  finished_at: string | null;
  removed: Record<string, number>;
}

/** Runs a command beside the platform. @returns the object that it prints */
function fleet<Result>(...args: string[]): Promise<Result> {
  const env = { PATH: process.env.PATH, FLEET_DATA_DIR: shared.platform.dataDir, DATABASE_URL: shared.database.url };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CLI, ...args, '--json'], { env }, (error, stdout, stderr) => {
      if (error) reject(new Error(stderr));
      else resolve(JSON.parse(stdout) as Result);
    });
  });
}

const erase = (...args: string[]) => fleet<Report>(...args, '--tenant', shared.platform.devJson().tenant_id);

const send = (text: string, type = 'echo', contextId?: string) =>
  shared.platform.client.send(text, { metadata: { agent_type: type }, ...(contextId && { contextId }) });

/** Whether any table still has a text. */
async function isStored(text: string): Promise<string[]> {
  const tables = await shared.database.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await shared.database.query(`SELECT 1 FROM ${name} t WHERE t::text LIKE '%' || $1 || '%' LIMIT 1`, [
      text,
    ]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

test('a message is erased with all that belongs to it; others of its session stay, and totals keep what they counted', async () => {
  const { client } = shared.platform;
  const gone = await send('one secret word');
  const kept = await send('another word', 'echo', gone.contextId);
  const succeeded = async () => {
    const answer = await client.ok('/agents/get_connection', { instance_id: 'echo-1' }, AgentConnectionResponse);
    return answer.connection.dispatches_succeeded;
  };
  expect(await succeeded()).toBe(2);
  const report = await erase('messages', 'erase', '--message', gone.id);
  expect(report).toMatchObject({
    finished_at: expect.any(String),
    removed: { messages: 1, dispatches: 1, idempotency_keys: 1 },
  });
  expect(report.removed.event_groups).toBeGreaterThanOrEqual(2);
  expect(await isStored(gone.id)).toEqual([]);
  expect(await client.failure('/messages/get_by_id', { message_id: gone.id })).toMatch(/^404/);
  expect((await client.message(kept.id)).state).toBe('completed');
  expect(await succeeded()).toBe(2);
});

test('a session ends, its message that waits for a human is canceled, and both go with its workflow', async () => {
  const waiting = await send('waiting secret', 'asking');
  const report = await erase('sessions', 'erase', '--session', String(waiting.contextId));
  expect(report).toMatchObject({
    removed: { sessions: 1, messages: 1, input_requests: 1, workflows: 1 },
  });
  expect(await isStored(waiting.id)).toEqual([]);
  expect(await isStored(String(waiting.contextId))).toEqual([]);
});

test('the sessions of a user go, those of others stay, and nobody can read later who it was', async () => {
  const { client } = shared.platform;
  const init = async (user_id: string) =>
    (await client.ok('/sessions/init', { user_id, agent_type: 'echo' }, SessionInitResponse)).session_id;
  const [ada, bob] = [await init('ada@example.org'), await init('bob@example.org')];
  await send('from ada', 'echo', ada);
  await send('from bob', 'echo', bob);
  const report = await erase('sessions', 'erase', '--user', 'ada@example.org');
  expect(report.removed).toMatchObject({ sessions: 1, messages: 1 });
  expect(await isStored('ada@example.org')).toEqual([]);
  expect(await isStored(ada)).toEqual([]);
  expect(await client.ok('/sessions/get_by_id', { session_id: bob }, SessionGetByIdResponse)).toMatchObject({
    ok: true,
  });
});

test('messages of a session or of a user go, and their sessions stay', async () => {
  const { client } = shared.platform;
  const user_id = 'eve@example.org';
  const { session_id } = await client.ok('/sessions/init', { user_id, agent_type: 'echo' }, SessionInitResponse);
  for (const selected of [
    ['--session', session_id],
    ['--user', user_id],
  ]) {
    const { id } = await send('of eve', 'echo', session_id);
    expect((await erase('messages', 'erase', ...selected)).removed).toMatchObject({ messages: 1 });
    expect(await isStored(id)).toEqual([]);
  }
  const { session } = await client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse);
  expect(session).toMatchObject({ status: 'active', user_id });
});

test('of decisions who, when and the digest stay in the audit trail', async () => {
  const { client } = shared.platform;
  const { id } = await send('to be decided', 'asking');
  const comment = 'a private comment';
  expect((await client.post(`/messages/${id}/resolve`, { resolution: 'confirmed', comment })).status).toBe(200);
  const trail = async () =>
    (await client.ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse)).approvals;
  const [decision, ...others] = await trail();
  expect([decision, ...others]).toMatchObject([{ comment, ip: '127.0.0.1', resolution: 'confirmed' }]);
  const { removed } = await erase('messages', 'erase', '--message', id);
  expect(removed).toMatchObject({ messages: 1, input_decisions: 1 });
  const { comment: _, ip: __, ...kept } = decision ?? {};
  expect(await trail()).toEqual([kept]);
  expect(kept).toMatchObject({
    principal: { type: 'credential' },
    digest: expect.any(String),
    decided_at: expect.any(String),
  });
  expect(await isStored(comment)).toEqual([]);
});

test('by age sessions go that have ended, with their messages', async () => {
  const { client } = shared.platform;
  const opened = async () => String((await send('in a session')).contextId);
  const [ended, active] = [await opened(), await opened()];
  expect((await client.post('/sessions/close', { session_id: ended })).status).toBe(200);
  const report = await erase('sessions', 'erase', '--older-than-days', '0');
  expect(report.removed).toMatchObject({ sessions: 1, messages: 1 });
  expect(await isStored(ended)).toEqual([]);
  const { session } = await client.ok('/sessions/get_by_id', { session_id: active }, SessionGetByIdResponse);
  expect(session.status).toBe('active');
});

test('by age only what is over goes', async () => {
  const waiting = await send('still waiting', 'asking');
  const over = await send('over');
  const report = await erase('messages', 'erase', '--older-than-days', '0', '--wait-seconds', '60');
  expect(report.finished_at).not.toBeNull();
  expect((await shared.platform.client.message(waiting.id)).state).toBe('input-required');
  expect(await isStored(over.id)).toEqual([]);
});

test('the secret key is rotated while the platform runs, and its clients notice nothing', async () => {
  const { client_id, client_secret } = shared.platform.devJson();
  const keyFile = join(shared.platform.dataDir, 'secret.key');
  const before = readFileSync(keyFile, 'utf8');
  const rotated = fleet<{ sealed_anew: Record<string, number>; credentials_left: number }>('keys', 'rotate-secret');
  const login = async () =>
    (
      await shared.platform.client.raw('/auth/get_token', JSON.stringify({ client_id, client_secret }), {
        'content-type': 'application/json',
      })
    ).status;
  const keyId = async () =>
    (
      await shared.database.query<{ id: string }>(
        'SELECT secret_key_id AS id FROM credentials WHERE credential_id = $1',
        [client_id],
      )
    )[0]?.id;
  const old = await keyId();
  await until(async () => (await login()) === 200 && (await keyId()) !== old, { what: 'the secret to be hashed anew' });
  const report = await rotated;
  expect(report.sealed_anew).toMatchObject({ signing_keys: 1 });
  expect(report.credentials_left).toBe(1); // that of the agents, which has not been used
  expect(readFileSync(`${keyFile}.previous`, 'utf8')).toBe(before);
  expect(readFileSync(keyFile, 'utf8')).not.toBe(before);
  expect((await send('after the rotation')).status.state).toBe('completed');
});
