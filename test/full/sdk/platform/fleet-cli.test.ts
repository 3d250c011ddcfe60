import { execFile } from 'node:child_process';
import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { verifySecret } from '../../../../auth/credentials.js';
import { loadOrCreateSecretKey } from '../../../../runtime/secret-key.js';
import { createSecrets } from '../../../../runtime/secrets.js';
import { freshDatabase } from '../../../setup/database.js';

const CLI = new URL('../../../../dist/cli/fleet.js', import.meta.url).pathname;
const database = await freshDatabase();
const dataDir = mkdtempSync(join(inject('runDir'), 'fleet-cli-'));
const secrets = createSecrets(await loadOrCreateSecretKey(dataDir));
writeFileSync(join(dataDir, 'dev.json'), JSON.stringify({ database_url: database.url }));

interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

function fleet(args: string[], env: Record<string, string> = {}): Promise<CliResult> {
  const options = { env: { PATH: process.env.PATH, FLEET_DATA_DIR: dataDir, ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

/** The one object that `--json` prints. */
async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await fleet([...args, '--json']);
  expect({ code, stderr, lines: stdout.split('\n').length }).toEqual({ code: 0, stderr: '', lines: 2 });
  return JSON.parse(stdout) as Record<string, unknown>;
}

test('the default type of a tenant is set and taken away', async () => {
  const { tenant_id } = await json('tenants', 'create', 'default type');
  const update = (type: string) => json('tenants', 'update', String(tenant_id), '--default-agent-type', type);
  expect(await update('writer')).toEqual({ tenant_id, default_agent_type: 'writer' });
  const listed = (await json('tenants', 'list')).tenants as Record<string, unknown>[];
  expect(listed.find((tenant) => tenant.tenant_id === tenant_id)).toMatchObject({ default_agent_type: 'writer' });
  expect(await update('none')).toEqual({ tenant_id, default_agent_type: null });
  expect((await fleet(['tenants', 'update', 'ten_unknown', '--default-agent-type', 'a'])).code).toBe(1);
  expect((await fleet(['tenants', 'update', String(tenant_id), '--default-agent-type', 'a b'])).code).toBe(1);
  expect((await fleet(['tenants', 'update', String(tenant_id)])).code).toBe(1);
});

test('a tenant and a credential are made, used and ended', async () => {
  const tenant = await json('tenants', 'create', 'Acme & Söhne');
  expect(tenant).toEqual({ tenant_id: expect.stringMatching(/^ten_/), name: 'Acme & Söhne' });
  const tenantId = String(tenant.tenant_id);
  const access = ['--scopes', 'read,admin', '--agent-types', 'a,b'];
  const made = await json('credentials', 'create', '--tenant', tenantId, '--name', 'ci', ...access);
  expect(made).toEqual({
    credential_id: expect.stringMatching(/^cred_/),
    client_id: made.credential_id,
    client_secret: expect.any(String),
    scopes: ['read', 'admin'],
    tenant_id: tenantId,
  });
  const client = { client_id: String(made.client_id), client_secret: String(made.client_secret) };
  expect(await verifySecret(database.db(), secrets, client)).toMatchObject({
    tenant_id: tenantId,
    agent_types: ['a', 'b'],
  });

  const rotated = await json('credentials', 'rotate', client.client_id, '--overlap-seconds', '0');
  expect(await verifySecret(database.db(), secrets, client)).toBeNull();
  const renewed = { ...client, client_secret: String(rotated.client_secret) };
  expect(await verifySecret(database.db(), secrets, renewed)).not.toBeNull();

  await json('credentials', 'revoke', client.client_id);
  expect(await verifySecret(database.db(), secrets, renewed)).toBeNull();
  const { credentials } = await json('credentials', 'list', '--tenant', tenantId);
  expect(credentials).toEqual([expect.objectContaining({ name: 'ci', revoked_at: expect.any(String) })]);

  expect(await json('tenants', 'delete', tenantId)).toEqual(tenant);
  const events = 'SELECT event_type FROM events WHERE tenant_id = $1 ORDER BY occurred_at';
  expect(await database.column(events, [tenantId])).toEqual(['tenant.created', 'tenant.deleted']);
  expect((await fleet(['tenants', 'delete', tenantId])).code).toBe(1);
});

test('keys rotate', async () => {
  const first = await json('keys', 'rotate');
  const second = await json('keys', 'rotate');
  expect(new Set(second.retired as string[])).toEqual(new Set([first.kid, first.receipt_kid]));
  const { keys } = (await json('keys', 'list')) as { keys: { kid: string; kind: string; retired_at: string | null }[] };
  expect(keys.map(({ kid, kind, retired_at }) => [kid, kind, retired_at === null])).toEqual([
    [second.kid, 'token', true],
    [first.kid, 'token', false],
    [second.receipt_kid, 'receipt', true],
    [first.receipt_kid, 'receipt', false],
  ]);
});

test('without --json people can read it', async () => {
  const { tenant_id } = await json('tenants', 'create', 'plain');
  expect((await fleet(['tenants', 'list'])).stdout).toContain(`tenant_id=${String(tenant_id)}  name=plain`);
  expect((await fleet(['credentials', 'list', '--tenant', String(tenant_id)])).stdout).toBe('none\n');
});

test('--help explains and ends well', async () => {
  expect(await fleet(['--help'])).toEqual({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('credentials create --tenant ID'),
  });
});

test.each([
  ['nothing', [], 2, 'A command is required'],
  ['an unknown command', ['tenants', 'paint'], 2, 'no command "tenants paint"'],
  ['no name', ['tenants', 'create'], 2, 'tenants create NAME'],
  ['an unknown option', ['tenants', 'list', '--wild'], 2, 'Unknown option'],
  ['a missing option', ['credentials', 'list'], 1, '--tenant is required'],
  ['an unknown tenant', ['credentials', 'list', '--tenant', 'ten_x'], 1, 'no tenant ten_x'],
  [
    'a scope that does not exist',
    ['credentials', 'create', '--tenant', 't', '--name', 'n', '--scopes', 'root'],
    1,
    'scopes',
  ],
  ['an unknown credential', ['credentials', 'revoke', 'cred_x'], 1, 'no credential cred_x'],
])('%s: a clear message, nothing on standard output', async (_what, args, code, message) => {
  expect(await fleet(args)).toEqual({ code, stdout: '', stderr: expect.stringContaining(message) });
});

test.each([
  ['nothing runs', { FLEET_DATA_DIR: '/nonexistent' }, 'no running platform'],
  ['the database is away', { DATABASE_URL: 'postgresql://x@127.0.0.1:1/x' }, 'does not answer'],
  [
    'the key is another one',
    { FLEET_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') },
    'not the key that this database',
  ],
  [
    'the key is missing',
    { DATABASE_URL: 'postgresql://x@127.0.0.1:1/x', FLEET_DATA_DIR: '/nonexistent' },
    'secret key is required',
  ],
  ['a setting does not fit', { FLEET_API_PORT: 'many' }, 'FLEET_API_PORT'],
])('%s: it says so, without a stack', async (_what, env, message) => {
  const result = await fleet(['tenants', 'list', '--json'], env);
  expect(result).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(message) });
  expect(result.stderr).not.toMatch(/^\s+at /m);
});

test('secret.key is made once, for its owner only', async () => {
  const folder = mkdtempSync(join(inject('runDir'), 'key-'));
  const keys = await Promise.all(Array.from({ length: 5 }, () => loadOrCreateSecretKey(folder)));
  expect(new Set(keys).size).toBe(1);
  expect(Buffer.from(keys[0] ?? '', 'base64')).toHaveLength(32);
  expect(statSync(join(folder, 'secret.key')).mode & 0o777).toBe(0o600);
});
