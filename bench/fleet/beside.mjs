/** What stands beside a busy row, and may not slow it: queues that are not empty, another tenant's queue, a transaction that stays open. */
import pg from 'pg';
import { createTenant } from '../harness/tenants.mjs';

/** Messages that wait for agents that are away. */
const QUEUED = 10_000;
/** Agent types that are away, each with a message. */
const AWAY_TYPES = 1_000;
/** Requests at once while a row is prepared. */
const WIDTH = 16;
const DAY_MS = 86_400_000;

/** Runs `work` for each number below `count`, some at once. */
async function times(count, work) {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: WIDTH }, lane));
}

/** Registers a connected agent that never comes. */
const away = (platform, agent_type) =>
  platform.post('/agents/register', { agent_type, instance_id: `${agent_type}-1` });

/** Sends a message that nobody waits for. */
async function enqueue(platform, agent_type) {
  const message = {
    kind: 'message',
    messageId: crypto.randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text: 'later' }],
  };
  const metadata = { agent_type, queue_wait_ms: DAY_MS };
  const params = { message, metadata, configuration: { blocking: false } };
  const { error } = await platform.post('/send', { jsonrpc: '2.0', id: 1, method: 'message/send', params });
  if (error) throw new Error(`a message was not queued: ${error.message}`);
}

/** 10,000 messages wait for one agent type that is away. */
export async function queued({ platform }) {
  await away(platform, 'away-all');
  await times(QUEUED, () => enqueue(platform, 'away-all'));
}

/** A thousand queues hold a message each. */
export async function queues({ platform }) {
  await times(AWAY_TYPES, async (index) => {
    await away(platform, `away-${index}`);
    await enqueue(platform, `away-${index}`);
  });
}

/** Another tenant's 10,000 messages wait. */
export async function tenant({ platform }) {
  const { client_id, client_secret } = await createTenant(platform, 'beside');
  const { token } = await platform.post('/auth/get_token', { client_id, client_secret });
  await queued({ platform: Object.assign(Object.create(platform), { token }) });
}

/** A transaction stays open, so that nothing that is deleted meanwhile can be removed. @returns what ends it */
export async function transaction({ databaseUrl, harness }) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  harness.onStop(() => client.end());
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('SELECT count(*) FROM pg_class');
  return () => client.query('ROLLBACK');
}
