/** Tenants and their credentials, made with the `fleet` command beside a running platform. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const FLEET = fileURLToPath(new URL('../../dist/cli/fleet.js', import.meta.url));
const run = promisify(execFile);

/** Runs a command of `fleet` for a platform on this data directory. @returns the object that it prints */
export async function fleet({ dataDir }, args, env = {}) {
  const { stdout } = await run(process.execPath, [FLEET, ...args, '--json'], {
    env: { ...process.env, FLEET_DATA_DIR: dataDir, ...env },
  });
  return JSON.parse(stdout);
}

/** Makes a tenant. @returns its id, and a credential with the scope `full` */
export async function createTenant(platform, name, env = {}) {
  const { tenant_id } = await fleet(platform, ['tenants', 'create', name], env);
  const options = ['--tenant', tenant_id, '--name', name, '--scopes', 'full'];
  const { client_id, client_secret } = await fleet(platform, ['credentials', 'create', ...options], env);
  return { tenant_id, client_id, client_secret };
}
