import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** The platform's address and a credential. */
export interface PlatformAccess {
  url: string;
  clientId: string;
  clientSecret: string;
  /** Certificate authority of the mesh, in PEM. */
  ca?: string;
}

/** `dev.json`, which a running platform writes into its data directory. */
export interface DevFile {
  base_url: string;
  mesh_url: string;
  temporal_ui_url: string | null;
  ca_file: string | null;
  client_id: string;
  client_secret: string;
  agent_client_id: string;
  agent_client_secret: string;
  tenant_id: string;
}

const POLL_MS = 1_000;

/** The data directory: `FLEET_DATA_DIR`, or `.fleet` in the working directory. */
export function dataDir(environment: NodeJS.ProcessEnv): string {
  return resolve(environment.FLEET_DATA_DIR || '.fleet');
}

/** Reads `dev.json`; null when it is missing or incomplete. */
export async function readDevFile(directory: string): Promise<DevFile | null> {
  try {
    return JSON.parse(await readFile(join(directory, 'dev.json'), 'utf8')) as DevFile;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * The access of an agent: from `FLEET_BASE_URL`, `FLEET_CLIENT_ID`, `FLEET_CLIENT_SECRET` and `FLEET_CA_FILE`, or else from `dev.json`. Waits
 * for the file when there is no platform yet.
 */
export async function findPlatform(environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<PlatformAccess> {
  const { FLEET_BASE_URL: url, FLEET_CLIENT_ID: clientId, FLEET_CLIENT_SECRET: clientSecret } = environment;
  if (url && clientId && clientSecret) {
    return { url, clientId, clientSecret, ...(await certificate(environment.FLEET_CA_FILE)) };
  }
  const directory = dataDir(environment);
  for (let attempt = 0; ; attempt += 1) {
    const dev = await readDevFile(directory);
    if (dev)
      return { ...(await accessFrom(dev)), clientId: dev.agent_client_id, clientSecret: dev.agent_client_secret };
    if (attempt === 0) process.stdout.write(`waiting for a platform in ${directory}\n`);
    await delay(POLL_MS, undefined, { signal });
  }
}

/** The access of a caller, from `dev.json`. */
export async function accessFrom(dev: DevFile): Promise<PlatformAccess> {
  return {
    url: dev.base_url,
    clientId: dev.client_id,
    clientSecret: dev.client_secret,
    ...(await certificate(dev.ca_file)),
  };
}

async function certificate(file: string | null | undefined): Promise<{ ca?: string }> {
  return file ? { ca: await readFile(file, 'utf8') } : {};
}
