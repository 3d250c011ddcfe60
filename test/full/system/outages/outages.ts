import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Task } from '../../../../contracts/a2a/a2a.js';
import { HTTP_ERRORS } from '../../../../contracts/errors.js';
import { ErrorBody } from '../../../../contracts/primitives.js';
import { FUNCTION_SCHEMA } from '../../../../db/migrate.js';
import type { Behaviour } from '../../../setup/agent.js';
import { leftovers, type RecordReader } from '../../../setup/histories/record-checker.js';
import { JournalingAgent } from '../../../setup/platform/fleet.js';
import type { MessagePath } from '../../../setup/platform/paths.js';
import { startBarePlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { allEnded, killEach } from '../../../setup/platform/process-tree.js';
import { randomFrom } from '../../../setup/seed.js';
import { until } from '../../../setup/until.js';

const MESSAGES = 200;
const SENDERS = 64;
const RECOVERY_MS = 150_000;

/** What a caller has been told: the task of each of its messageIds that was acknowledged. */
type Journal = Map<string, string>;

let platform: TestPlatform;
let agents: JournalingAgent[];
const random = randomFrom();

/** How long an answer takes at most; long enough that most of what was sent is in flight when a server is killed. */
let slowestMs = 0;
/** Answers after a while; now and then it fails. */
const slow: Behaviour = (dispatch) => {
  const fails = random() < 0.1;
  setTimeout(
    () => (fails ? dispatch.error('HANDLER_ERROR') : dispatch.result(`done: ${dispatch.text}`)),
    20 + random() * slowestMs,
  );
};

async function withDatabase<T>(work: (reader: RecordReader) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: platform.devJson().database_url,
    options: `-c search_path=${FUNCTION_SCHEMA},public`,
  });
  await client.connect();
  try {
    return await work({ query: async (text, values) => (await client.query(text, values)).rows });
  } finally {
    await client.end();
  }
}

/** What a caller is told to repeat while servers are away, or come back with a full queue: docs/errors.md. */
const TO_REPEAT = ['SERVICE_UNAVAILABLE', 'RATE_LIMITED'] as const;

/** One send. An answer other than a task must be one to repeat; no answer at all is what a killed server gives. */
async function sendOnce(messageId: string, journal: Journal): Promise<void> {
  const answer = await platform.client
    .rpc(`text of ${messageId}`, {
      messageId,
      metadata: { agent_type: 'worker' },
      blocking: false,
      signal: AbortSignal.timeout(20_000),
    })
    .catch((error: Error) => {
      expect(['TypeError', 'TimeoutError', 'AbortError']).toContain(error.name);
      return undefined;
    });
  if (answer?.status === 200 && answer.result !== undefined) {
    const { id } = Task.parse(answer.result);
    expect(journal.get(messageId) ?? id).toBe(id);
    journal.set(messageId, id);
  } else if (answer) {
    const { code } = ErrorBody.parse(answer.body);
    expect(TO_REPEAT.map((known) => [HTTP_ERRORS[known], known])).toContainEqual([answer.status, code]);
  }
}

/** Sends all of them, some at a time, in the order given. `stop` ends it early. */
async function sendAll(messageIds: string[], journal: Journal, stop: () => boolean = () => false): Promise<void> {
  const queue = [...messageIds];
  const sender = async () => {
    for (let id = queue.shift(); id !== undefined && !stop(); id = queue.shift()) await sendOnce(id, journal);
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
}

/** Sends those that are not acknowledged, again and again, until it is enough. */
async function sendUntil(enough: () => boolean, messageIds: string[], journal: Journal): Promise<void> {
  while (!enough()) {
    const unsent = messageIds.filter((id) => !journal.has(id));
    await sendAll(unsent, journal, enough);
  }
}

const NOT_ENDED = "SELECT 1 FROM messages WHERE state NOT IN ('completed', 'failed', 'canceled')";
const inFlight = () => withDatabase(async (reader) => (await reader.query(NOT_ENDED)).length);

/** Every message that was acknowledged is on the record once, has ended, and the record does not contradict itself. */
async function expectAllEndedOnce(journal: Journal): Promise<void> {
  await withDatabase(async (reader) => {
    await until(
      async () => {
        const open = await reader.query(NOT_ENDED);
        return open.length === 0 || Promise.reject(new Error(`${open.length} messages have not ended`));
      },
      { timeoutMs: RECOVERY_MS, what: 'the end of every message' },
    );
    await until(async () => (await leftovers(reader)).length === 0).catch(() => undefined);
    expect(await leftovers(reader)).toEqual([]);
    const rows = await reader.query<{ client_message_id: string; message_id: string }>(
      'SELECT client_message_id, message_id FROM messages',
    );
    const recorded = new Map(rows.map((row) => [row.client_message_id, row.message_id]));
    expect(recorded.size).toBe(rows.length);
    const lost = [...journal].filter(([messageId, taskId]) => recorded.get(messageId) !== taskId);
    expect(lost).toEqual([]);
  });
}

/** What the agents were given fits the record: nothing that it does not call sent, and no message under two dispatches. */
async function expectAgentsAgree(): Promise<void> {
  await withDatabase(async (reader) => {
    const rows = await reader.query<{ dispatch_id: string; sent_at: Date | null }>(
      'SELECT dispatch_id, sent_at FROM dispatches',
    );
    const sent = new Set(rows.filter((row) => row.sent_at !== null).map((row) => row.dispatch_id));
    const journal = agents.flatMap((agent) => agent.journal);
    expect(journal.filter((entry) => !sent.has(entry.dispatch_id))).toEqual([]);
    const first = new Map([...journal].reverse().map((entry) => [entry.message_id, entry.dispatch_id]));
    expect(journal.filter((entry) => first.get(entry.message_id) !== entry.dispatch_id)).toEqual([]);
  });
}

const idsOf = (round: string, count: number) => Array.from({ length: count }, (_, index) => `${round}-${index}`);

async function healthy(): Promise<void> {
  await until(async () => platform.ended ?? (await platform.client.get('/health?ready=full')).status === 200, {
    timeoutMs: 90_000,
    what: 'health',
  });
  if (platform.ended) throw new Error(`the platform ended: ${platform.ended}\n${platform.log().slice(-4_000)}`);
}

/** The tests of servers that are killed, for one of the two paths: a file for each, so that they run beside each other. */
export function outages({ way, env }: MessagePath): void {
  beforeAll(async () => {
    platform = await startBarePlatform({ ...env, QUEUE_WAIT_MS: '60000', RESUME_WINDOW_MS: '5000' });
    const join = (name: string) =>
      new JournalingAgent(platform, { instanceId: name, agentType: 'worker', maxConcurrentSessions: 0 }, slow).start();
    agents = await Promise.all(['worker-1', 'worker-2', 'worker-3'].map(join));
  });
  afterAll(async () => {
    await Promise.all((agents ?? []).map((agent) => agent.stop()));
    await platform?.stop();
  });

  describe(`${way}, kill -9`, () => {
    test('of the whole process tree, twice, with 200 messages in flight: each acknowledged one ends once', async () => {
      const journal: Journal = new Map();
      const rounds = ['first', 'second'].map((round) => idsOf(round, MESSAGES));
      slowestMs = 12_000;
      for (const ids of rounds) {
        const before = journal.size;
        const enough = () => journal.size - before >= MESSAGES / 2;
        const sending = sendUntil(enough, ids, journal);
        await until(enough, { timeoutMs: 120_000, what: 'enough acknowledged messages' });
        expect(await inFlight()).toBeGreaterThan(MESSAGES * 0.25);
        await platform.kill9();
        await sending;
        await platform.start();
      }
      const all = rounds.flat();
      await sendAll(all, journal); // the acknowledged ones too: they must come back as the same tasks
      await sendUntil(() => journal.size === all.length, all, journal);
      await expectAllEndedOnce(journal);
      await expectAgentsAgree();
    }, 400_000);

    test.each([
      ['Temporal', /temporal.* server start-dev/],
      ['Postgres', /postgres.* -D /],
    ])(
      'of %s alone: callers wait or are told to repeat, it comes back by itself and nothing is lost',
      async (name, command) => {
        const journal: Journal = new Map();
        const ids = idsOf(name, 120);
        const [server] = await platform.children(command);
        if (!server) throw new Error(`${name} does not run below the platform`);
        const sending = sendAll(ids, journal);
        await until(() => journal.size >= 15);
        killEach([server]);
        await allEnded([server]);
        await sending;
        await healthy();
        expect(platform.ended).toBeUndefined();
        await sendUntil(() => journal.size === ids.length, ids, journal);
        await expectAllEndedOnce(journal);
        await expectAgentsAgree();
      },
      300_000,
    );
  });
}
