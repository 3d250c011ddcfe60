import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { createCredential, rotateCredential, verifySecret } from '../../../auth/credentials.js';
import { checkSecretKey, createKeyWatch, keysInUse, SecretKeyMismatch } from '../../../auth/secret-check.js';
import { rotateSecretKey } from '../../../auth/secret-rotation.js';
import { loadSigningKeys, rotateSigningKeys } from '../../../auth/signing-keys.js';
import { rotateSecret, secretKeyStatus } from '../../../cli/rotate-secret.js';
import type { Db, Tx } from '../../../db/pool.js';
import { holdSecretKey } from '../../../db/secret-key.js';
import { createPolicyCatalog } from '../../../policy/policy-catalog.js';
import { SEALED } from '../../../runtime/sealed-columns.js';
import { loadOrCreateSecretKey, readSecretKeys, renewSecretKey } from '../../../runtime/secret-key.js';
import { createSecrets, type Secrets } from '../../../runtime/secrets.js';
import { testAuthor } from '../../setup/author.js';
import { insertTenant } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { gate, until } from '../../setup/until.js';

const DELIVERIES = 450;

const newKey = () => randomBytes(32).toString('base64');

/** Values of every sealed column, sealed with this key. */
async function fixture(key: string) {
  const database = await freshDatabase();
  const db = database.db();
  const secrets = createSecrets(key);
  await checkSecretKey(db, secrets);
  const tenant = await insertTenant(database);
  await loadSigningKeys(db, secrets);
  const seal = (column: keyof typeof SEALED) => secrets.encrypt(`text of ${column}`, SEALED[column].purpose);
  await database.query(
    `INSERT INTO push_configs (tenant_id, message_id, config_id, url, schemes, protocol_version, secrets) VALUES ($1, 'm', 'c', '', '{}', '0.3', $2), ($1, 'm', 'd', '', '{}', '0.3', NULL)`,
    [tenant, seal('pushSecrets')],
  );
  await database.query(
    `WITH rule AS (INSERT INTO alert_rules (tenant_id, rule_id, name, description, event, severity, threshold, window_seconds, cooldown_seconds, enabled)
       VALUES ($1, 'r', '', '', '*', 'info', 1, 1, 1, true))
     INSERT INTO alert_channels (tenant_id, rule_id, channel_id, place, type, enabled, config, secrets) VALUES ($1, 'r', 'c', 0, 'webhook', true, '{}', $2)`,
    [tenant, seal('channelSecrets')],
  );
  await database.query(
    `INSERT INTO policies (tenant_id, policy_id, scope, name, decision, description, match, reason, approvers, evaluator, evaluator_secret, priority, enabled)
     VALUES ($1, 'p', 'tool', '', 'deny', '', '{}', '', '{}', '{}', $2, 1, true)`,
    [tenant, seal('evaluatorSecrets')],
  );
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions, dispatch_auth)
     VALUES ($1, 'a', 't', 'hosted', '', 'unknown', 0, $2), ($1, 'b', 't', 'hosted', '', 'unknown', 0, NULL)`,
    [tenant, seal('agentCredentials')],
  );
  await database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, url, receiver, body, status, max_attempts)
     SELECT $1, 'dlv_' || n, 'evt_' || n, 'r', 'c', '', '', '', '', $2, 'delivered', 1 FROM generate_series(1, ${DELIVERIES}) n`,
    [tenant, seal('deliveryBodies')],
  );
  return { database, db, secrets, tenant };
}

/** A new credential of the tenant, whose secret is hashed with the key of `secrets`. */
async function newClient(db: Db, secrets: Secrets, tenant: string) {
  const { credential, client_secret } = await db.tenant(tenant, (tx) =>
    createCredential(tx, secrets, testAuthor(tenant), { name: 'n', scopes: ['read'] }),
  );
  return { client_id: credential.client_id, client_secret };
}

/** The values of every sealed column in plain, by key of the registry; throws where one cannot be read. */
async function readAll(db: Db, key: string): Promise<Record<string, string[]>> {
  const secrets = createSecrets(key);
  const plain: Record<string, string[]> = {};
  for (const [name, { table, column, purpose }] of Object.entries(SEALED)) {
    const select = `SELECT ${column} AS value FROM ${table} WHERE ${column} IS NOT NULL`;
    const rows = await db.system((tx) => tx.query<{ value: Buffer }>(select));
    plain[name] = rows.map(({ value }) => secrets.decrypt(value, purpose).toString()).sort();
  }
  return plain;
}

/** Whether a transaction waits for a lock of another. */
async function lockWaits(database: Awaited<ReturnType<typeof freshDatabase>>): Promise<boolean> {
  const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return (await database.query(waits)).length > 0;
}

/** A database that a process has until it dies. */
function untilDeath(db: Db, transactions: number): Db {
  let left = transactions;
  return {
    ...db,
    system: async (work) => {
      left -= 1;
      if (left < 0) throw new Error('killed');
      return db.system(work);
    },
  };
}

/** A database where something happens after each statement with this text. */
function racing(db: Db, text: string, happen: () => Promise<unknown>): Db {
  const watched =
    <T>(work: (tx: Tx) => Promise<T>) =>
    (tx: Tx) =>
      work({
        ...tx,
        query: async (...query) => {
          const rows = await tx.query(...query);
          if (query[0].includes(text)) await happen();
          return rows as never;
        },
      });
  return {
    ...db,
    system: (work) => db.system(watched(work)),
    tenant: (of, work) => db.tenant(of, watched(work)),
  };
}

/** A whole rotation, which waits for no process to notice it. */
const rotate = (db: Db, old: string, next: string) =>
  rotateSecretKey(db, createSecrets(next, [old]), createSecrets(next).check(), 0);

test('runs that are killed anywhere are finished by the next: then the new key alone reads everything', async () => {
  const [old, next] = [newKey(), newKey()];
  const { db } = await fixture(old);
  const before = await readAll(db, old);
  let report: Awaited<ReturnType<typeof rotate>> | undefined;
  for (let life = 1; !report; life++) {
    report = await rotate(untilDeath(db, life), old, next).catch(async (error: Error) => {
      expect(error.message).toBe('killed');
      // Meanwhile processes with both keys start, and one with the new key alone does not.
      await checkSecretKey(db, createSecrets(next, [old]));
      if ((await db.system((tx) => keysInUse(tx)))?.before !== null)
        await expect(checkSecretKey(db, createSecrets(next))).rejects.toThrow(SecretKeyMismatch);
      return undefined;
    });
  }
  expect(await readAll(db, next)).toEqual(before);
  await checkSecretKey(db, createSecrets(next));
  await expect(checkSecretKey(db, createSecrets(old))).rejects.toThrow(SecretKeyMismatch);
  await expect(readAll(db, old)).rejects.toThrow(/cannot be read/);
  // Again: nothing is left to do.
  expect(await rotate(db, old, next)).toMatchObject({ sealed_anew: { deliveries: 0, policies: 0 } });
});

test('a value that changes while it is sealed anew keeps its change', async () => {
  const [old, next] = [newKey(), newKey()];
  const { db, database, secrets } = await fixture(old);
  const changed = secrets.encrypt('changed', SEALED.evaluatorSecrets.purpose);
  const change = () => database.query('UPDATE policies SET evaluator_secret = $1', [changed]);
  // The writer never stops, so this run does not end by itself; it dies, and the next finishes.
  const rotation = rotate(untilDeath(racing(db, 'FROM policies', change), 40), old, next);
  await expect(rotation).rejects.toThrow('killed');
  await rotate(db, old, next);
  expect((await readAll(db, next)).evaluatorSecrets).toEqual(['changed']);
});

test('a process with the old key alone stores nothing that it sealed or hashed; one with both keys uses the new one at once', async () => {
  const [old, next] = [newKey(), newKey()];
  const { db, database, secrets, tenant } = await fixture(old);
  await newClient(db, secrets, tenant);
  // A transaction that seals something as the rotation begins.
  const [held, released] = [gate(), gate()];
  const sealing = db.system(async (tx) => {
    await holdSecretKey(tx, secrets);
    held.open();
    await released.promise;
    const last = secrets.encrypt('last', SEALED.evaluatorSecrets.purpose);
    await tx.query('UPDATE policies SET evaluator_secret = $1', [last]);
  });
  await held.promise;
  const rotation = rotate(db, old, next);
  await until(() => lockWaits(database), { what: 'the rotation waits for the transaction' });
  released.open();
  await sealing;
  await rotation;
  expect((await readAll(db, next)).evaluatorSecrets).toEqual(['last']);
  const unavailable = { code: 'SERVICE_UNAVAILABLE' };
  await expect(newClient(db, createSecrets(old), tenant)).rejects.toMatchObject(unavailable);
  await expect(rotateSigningKeys(db, createSecrets(old))).rejects.toMatchObject(unavailable);
  const client = await newClient(db, createSecrets(old, [next]), tenant); // has not noticed the rotation
  expect(await verifySecret(db, createSecrets(next), client)).not.toBeNull();
  await readAll(db, next);
});

test('a change of a policy does not write back what it read before the rotation sealed it anew', async () => {
  const [old, next] = [newKey(), newKey()];
  const { db, database, secrets, tenant } = await fixture(old);
  let rotation: ReturnType<typeof rotate> | undefined;
  const raced = racing(db, 'FROM policies WHERE tenant_id', () => {
    let isOver = false;
    rotation = rotate(db, old, next);
    void rotation.finally(() => {
      isOver = true;
    });
    return until(async () => isOver || (await lockWaits(database)), { what: 'the rotation waits or ends' });
  });
  const [outbound, engine] = [{ checkUrl: () => undefined } as never, { changed: () => undefined } as never];
  const catalog = createPolicyCatalog({ db: raced, secrets, outbound, engine });
  await catalog.update(testAuthor(tenant), { policy_id: 'p', name: 'renamed' });
  await rotation;
  expect((await readAll(db, next)).evaluatorSecrets).toEqual(['text of evaluatorSecrets']);
});

test('a second rotation is refused, and keeps the previous key, while client secrets need it', async () => {
  const dataDir = mkdtempSync(join(inject('runDir'), 'secret-key-'));
  const first = await loadOrCreateSecretKey(dataDir);
  const { db, database, secrets, tenant } = await fixture(first);
  const client = await newClient(db, secrets, tenant);
  // Of a release that did not note the key.
  await database.query('UPDATE credentials SET secret_key_id = NULL');
  const [second = '', ...before] = await renewSecretKey(dataDir);
  expect(before).toEqual([first]);
  const report = await rotateSecretKey(db, createSecrets(second, before), createSecrets(second).check(), 0);
  expect(report.credentials_left).toBe(1);
  const store = {
    ...{ db, secrets: createSecrets(second, before), keys: [second, first] as [string, string] },
    renewKeys: () => renewSecretKey(dataDir),
  };
  await expect(rotateSecret(store)).rejects.toThrow(new RegExp(`1 client secrets still need .*${client.client_id}`));
  const third = newKey();
  await expect(rotate(db, second, third)).rejects.toThrow(SecretKeyMismatch);
  expect(await readSecretKeys(dataDir)).toEqual([second, first]);
  expect(readFileSync(join(dataDir, 'secret.key.previous'), 'utf8')).toContain(first);
  const status = { rotation_under_way: false, credentials_left: 1, credential_ids_left: [client.client_id] };
  expect(await secretKeyStatus(store)).toEqual(status);
  // Its next use frees the way.
  expect(await verifySecret(db, store.secrets, client)).not.toBeNull();
  await rotate(db, second, third);
  expect(await verifySecret(db, createSecrets(third, [second]), client)).not.toBeNull();
});

test('values that no key opens are reported and do not stop a rotation; with their key they are sealed anew', async () => {
  const [older, old, next] = [newKey(), newKey(), newKey()];
  const { db, database, tenant } = await fixture(old);
  const alien = createSecrets(older).encrypt('found again', SEALED.evaluatorSecrets.purpose);
  await database.query('UPDATE policies SET evaluator_secret = $1', [alien]);
  await database.query(`UPDATE push_configs SET secrets = 'garbage' WHERE config_id = 'c'`);
  const report = await rotate(db, old, next);
  expect(report).toMatchObject({
    sealed_anew: { signing_keys: 2, alert_channels: 1, deliveries: DELIVERIES, policies: 0 },
    unreadable: { push_configs: 1, policies: 1 },
    unreadable_rows: [`push_configs ${tenant} m c`, `policies ${tenant} p`],
  });
  expect((await db.system((tx) => keysInUse(tx)))?.before).toBeNull();
  await database.query(`UPDATE push_configs SET secrets = NULL`);
  // The key was found: the same command with it.
  const store = { db, secrets: createSecrets(next), keys: [next, older] as [string, string], renewKeys: null };
  expect(await rotateSecret(store)).toMatchObject({ sealed_anew: { policies: 1, deliveries: 0 }, unreadable: {} });
  expect((await readAll(db, next)).evaluatorSecrets).toEqual(['found again']);
});

test('a run that ends late does not take the place of the rotation after it', async () => {
  const [old, next, last] = [newKey(), newKey(), newKey()];
  const { db } = await fixture(old);
  let runs = 0;
  const late: Db = {
    ...db,
    system: async (work) => {
      runs += 1;
      // As the first run begins to finish, another run of the same has finished, and the next rotation too.
      if (runs === 2) {
        await rotate(db, old, next);
        await rotate(db, next, last);
      }
      return db.system(work);
    },
  };
  await rotate(late, old, next);
  expect(await db.system((tx) => keysInUse(tx))).toEqual({ inUse: createSecrets(last).check(), before: null });
  await readAll(db, last);
});

test('a client secret is valid before, during and after a rotation, and is hashed anew at its next use', async () => {
  const [old, next] = [newKey(), newKey()];
  const { db, secrets, tenant } = await fixture(old);
  const made = () => newClient(db, secrets, tenant);
  const [used, unused, overlapping] = [await made(), await made(), await made()];
  const { client_id } = overlapping;
  const { client_secret } = await db.system((tx) =>
    rotateCredential(tx, secrets, testAuthor(tenant), client_id, 3_600),
  );
  const login = (client: typeof used, key: string, ...others: string[]) =>
    verifySecret(db, createSecrets(key, others), client);
  expect((await rotate(db, old, next)).credentials_left).toBe(3);
  for (const client of [used, overlapping, { client_id, client_secret }]) {
    expect(await login(client, next)).toBeNull();
    expect(await login(client, next, old)).not.toBeNull();
    expect(await login(client, next)).not.toBeNull();
  }
  expect((await rotate(db, old, next)).credentials_left).toBe(1);
  expect(await login(unused, next)).toBeNull();
});

test('a running process takes the new key from the data directory; without it the log says so', async () => {
  const [old, next] = [newKey(), newKey()];
  const { db } = await fixture(old);
  await rotate(db, old, next);
  const lines: unknown[] = [];
  const note = (_: object, line?: string) => lines.push(line);
  const log = { info: note, warn: note };
  for (const keys of [[], [next, old]]) {
    const running = createSecrets(old);
    const watch = createKeyWatch({ db, secrets: running, readKeys: async () => keys, log: log as never });
    const sealed = running.encrypt('before', 'a');
    watch.start();
    watch.wake();
    await until(() => lines.length > 0, { what: 'a line in the log' });
    await watch.stop();
    expect(running.check()).toBe(createSecrets(keys[0] ?? old).check());
    expect(running.decrypt(sealed, 'a').toString()).toBe('before');
    const rotated = 'the secret key was rotated: the new one is in use';
    expect(lines.splice(0)).toEqual([keys.length > 0 ? rotated : 'a background loop fails; it keeps trying']);
  }
});

test('without the lost key a platform starts as the documentation says, and keeps what was not sealed', async () => {
  const { db, database, tenant } = await fixture(newKey());
  const next = createSecrets(newKey());
  await expect(checkSecretKey(db, next)).rejects.toThrow(SecretKeyMismatch);
  const page = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
  const [, steps = ''] = /```sql\n(BEGIN;\n[^`]*DELETE FROM platform_facts[^`]*)```/.exec(page) ?? [];
  await database.query(steps);
  await checkSecretKey(db, next);
  const keys = (await loadSigningKeys(db, next)).map(({ kind, retired }) => [kind, retired]);
  expect(keys).toEqual([
    ['token', false],
    ['receipt', false],
    ['receipt', true],
  ]); // receipts of before are still verified
  expect(await verifySecret(db, next, await newClient(db, next, tenant))).not.toBeNull();
  for (const { table, column } of Object.values(SEALED))
    if (table !== 'signing_keys')
      expect(await database.query(`SELECT 1 FROM ${table} WHERE ${column} IS NOT NULL`)).toEqual([]);
  expect(await database.query('SELECT 1 FROM policies')).toHaveLength(1);
});
