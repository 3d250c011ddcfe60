import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { ErasureReport } from '../../../erasure/erasures.js';
import { SEALED } from '../../../runtime/sealed-columns.js';
import { createSecrets } from '../../../runtime/secrets.js';
import { idAt, month } from '../../db/retention-fixture.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

const CLI = new URL('../../../dist/cli/fleet.js', import.meta.url).pathname;
const newKey = () => randomBytes(32).toString('base64');
const [oldKey, nextKey] = [newKey(), newKey()];

const { platform, database } = await startPlatform({
  FLEET_SECRET_KEY: oldKey,
  FLEET_PREVIOUS_SECRET_KEY: nextKey,
  MESSAGE_RETENTION_DAYS: '40',
});
const { tenant_id: tenantId } = platform.devJson();

/** A platform starts, is killed and starts again. */
const TIMEOUT_MS = 180_000;

/** Commands of an operator, beside the platform. */
const command = (args: string[]) => [CLI, ...args, '--json'];
const environment = {
  env: {
    PATH: process.env.PATH,
    FLEET_DATA_DIR: platform.dataDir,
    DATABASE_URL: database.url,
    FLEET_SECRET_KEY: nextKey,
    FLEET_PREVIOUS_SECRET_KEY: oldKey,
  },
};
async function fleet<Result>(...args: string[]): Promise<Result> {
  const { stdout } = await promisify(execFile)(process.execPath, command(args), environment);
  return JSON.parse(stdout) as Result;
}

/** Holds a lock, so that whoever comes to it waits. @returns lets it go */
async function hold(statement: string, values: unknown[] = []): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('BEGIN');
  await client.query(statement, values);
  return async () => void (await client.query('ROLLBACK'));
}

/** Waits until a statement with this text waits for a lock. */
const untilWaiting = (text: string) =>
  until(
    async () => {
      const found = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`,
        [`%${text}%`],
      );
      return found.length > 0;
    },
    { what: `${text} to wait` },
  );

const SECRETS = 450;
const { purpose } = SEALED.pushSecrets;

/** How many secrets a key opens. */
async function openedBy(key: string): Promise<number> {
  const secrets = createSecrets(key);
  const rows = await database.query<{ secrets: Buffer }>("SELECT secrets FROM push_configs WHERE message_id = 'm'");
  const opens = ({ secrets: sealed }: { secrets: Buffer }) => {
    try {
      return secrets.decrypt(sealed, purpose).toString() === 'a secret';
    } catch {
      return false;
    }
  };
  return rows.filter(opens).length;
}

test(
  'a rotation of the secret key that is killed between two portions is finished by the next run',
  async () => {
    await database.query(
      `INSERT INTO push_configs (tenant_id, message_id, config_id, url, schemes, protocol_version, secrets)
     SELECT $1, 'm', lpad(n::text, 4, '0'), '', '{}', '0.3', $2 FROM generate_series(1, $3::int) n`,
      [tenantId, createSecrets(oldKey).encrypt('a secret', purpose), SECRETS],
    );
    const release = await hold("SELECT 1 FROM push_configs WHERE message_id = 'm' AND config_id = '0300' FOR UPDATE");
    const rotation = spawn(process.execPath, command(['keys', 'rotate-secret']), environment);
    await untilWaiting('UPDATE push_configs');
    rotation.kill('SIGKILL');
    await once(rotation, 'exit');
    await release();
    const sealedAnew = await openedBy(nextKey);
    expect(sealedAnew).toBeGreaterThan(0);
    expect(await openedBy(oldKey)).toBe(SECRETS - sealedAnew);
    expect(await fleet('keys', 'status')).toMatchObject({ rotation_under_way: true });
    const report = await fleet<{ sealed_anew: Record<string, number> }>('keys', 'rotate-secret');
    expect(report).toMatchObject({ sealed_anew: { push_configs: SECRETS - sealedAnew }, unreadable: {} });
    expect(await openedBy(nextKey)).toBe(SECRETS);
    expect(await fleet('keys', 'status')).toMatchObject({ rotation_under_way: false });
    await database.query("DELETE FROM push_configs WHERE message_id = 'm'");
  },
  TIMEOUT_MS,
);

/** Messages of a session that ended at a time. @returns their ids */
async function insertMessages(count: number, at: Date, sessionId: string): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, place) => idAt('msg', at, place));
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, deadline_ms, state, created_at,
       updated_at, completed_at)
     SELECT $1, id, $2, session_uuid(uuid_of($1), $2), 'cred_past', id, 'message/send', '[]', 1000, 'completed', $3, $3, $3 FROM unnest($4::text[]) id`,
    [tenantId, sessionId, at, ids],
  );
  return ids;
}

const MESSAGES = 250;

test(
  'an erasure whose process is killed between two portions is finished when it is started again',
  async () => {
    const sessionId = idAt('ses', new Date());
    await database.query(
      `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, ended_at) VALUES ($1, $2, false, 'expired', 60, now())`,
      [tenantId, sessionId],
    );
    const ids = await insertMessages(MESSAGES, new Date(), sessionId);
    const release = await hold('SELECT 1 FROM messages WHERE tenant_id = $1 AND message_id = $2 FOR UPDATE', [
      tenantId,
      ids[150],
    ]);
    const args = ['sessions', 'erase', '--tenant', tenantId, '--session', sessionId, '--wait-seconds', '0'];
    const { erasure_id } = await fleet<ErasureReport>(...args);
    await untilWaiting('DELETE FROM messages');
    await platform.kill9();
    await release();
    const report = async () =>
      (await fleet<{ erasures: ErasureReport[] }>('erasures', 'list')).erasures.find(
        (one) => one.erasure_id === erasure_id,
      );
    expect(await report()).toMatchObject({ finished_at: null, removed: { messages: 100 } });
    await database.query('UPDATE erasures SET next_at = now()'); // the lease of the dead process is a minute
    await platform.start();
    const finished = await until(async () => {
      const now = await report();
      return now?.finished_at ? now : undefined;
    });
    expect(finished.removed).toMatchObject({ messages: MESSAGES, sessions: 1 });
    expect(await database.query('SELECT 1 FROM messages WHERE message_id = ANY ($1)', [ids])).toEqual([]);
  },
  TIMEOUT_MS,
);

const { suffix, middle } = month(3);
const OLD = `messages_${suffix}`;

/** A month of messages that is older than what is kept. */
async function addOldMonth(): Promise<void> {
  const [oldest] = await database.query<{ name: string; upper_bound: string; bound: string }>(
    "SELECT name, upper_bound, id_bound('msg', $1::date) AS bound FROM partitions_of('messages') WHERE lower_bound = ''",
    [month(0).first],
  );
  const { name, upper_bound, bound } = oldest ?? {};
  await database.query(`BEGIN;
    ALTER TABLE messages DETACH PARTITION public.${name};
    CREATE TABLE public.${OLD} PARTITION OF messages FOR VALUES FROM (MINVALUE) TO ('${bound}');
    ALTER TABLE messages ATTACH PARTITION public.${name} FOR VALUES FROM ('${bound}') TO ('${upper_bound}');
    COMMIT`);
}

/** How far the detachment of the old month came; undefined where the table is gone. */
async function stateOfOldMonth(): Promise<'attached' | 'pending' | 'detached' | undefined> {
  const [row] = await database.query<{ state: 'attached' | 'pending' | 'detached' }>(
    `SELECT CASE WHEN i.inhrelid IS NULL THEN 'detached' WHEN i.inhdetachpending THEN 'pending' ELSE 'attached' END AS state
       FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid WHERE c.relname = $1`,
    [OLD],
  );
  return row?.state;
}

test(
  'a retention whose process is killed while it detaches a month is finished when it is started again',
  async () => {
    await addOldMonth();
    const ids = await insertMessages(5, middle, 'ses_past');
    await platform.stop();
    const release = await hold('SELECT 1 FROM messages WHERE message_id = $1', [ids[0]]);
    await platform.start();
    await until(async () => (await stateOfOldMonth()) === 'pending', { what: 'the detachment' });
    await platform.kill9();
    expect(await stateOfOldMonth()).toBe('pending');
    await release(); // the server may still end the statement of the dead process
    expect(await stateOfOldMonth()).toBeDefined();
    await platform.start();
    await until(async () => (await stateOfOldMonth()) === undefined, { what: 'the end of the month' });
    expect(await database.query('SELECT 1 FROM messages WHERE message_id = ANY ($1)', [ids])).toEqual([]);
  },
  TIMEOUT_MS,
);
