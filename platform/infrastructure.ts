import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { ensureCertificate } from '../embedded/certificate.js';
import { lockDataDir } from '../embedded/lock-file.js';
import { startPostgres } from '../embedded/postgres.js';
import { startTemporal } from '../embedded/temporal.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import { loadOrCreateSecretKey, readSecretKeys } from '../runtime/secret-key.js';

/** The servers and keys that the platform uses. Configured addresses replace the embedded servers. */
export interface Infrastructure {
  databaseUrl: string;
  /** For the client and the worker. */
  temporal: ReturnType<typeof loadClientConnectConfig>['connectionOptions'] & { address: string };
  temporalUiUrl: string | null;
  /** The newest first: one, or two while the secret key is rotated and after it. */
  secretKeys: [string, ...string[]];
  /** Set when the mesh role runs in this process. */
  tls: { cert: string; key: string; caFile: string | null; read: () => Promise<{ cert: string; key: string }> } | null;
}

interface InfrastructureOptions {
  config: Config;
  log: Logger;
  /** Prints a line for the person who started the platform. */
  print: (line: string) => void;
  /** Called with a stop function as soon as each server runs. */
  onStop: (stop: () => Promise<void>) => void;
  /** Whether the mesh role runs in this process. */
  wantsTls: boolean;
}

async function openPostgres({ config, log, print, onStop }: InfrastructureOptions): Promise<string> {
  if (config.DATABASE_URL) return config.DATABASE_URL;
  const postgres = await startPostgres({ dataDir: config.FLEET_DATA_DIR, log, onLine: print });
  onStop(() => postgres.stop());
  print(`Postgres: ${postgres.adopted ? 'adopted the running server' : 'started'}`);
  return postgres.url;
}

async function openTemporal(
  options: InfrastructureOptions,
): Promise<Pick<Infrastructure, 'temporal' | 'temporalUiUrl'>> {
  const { config, log, print, onStop } = options;
  const { FLEET_DATA_DIR: dataDir, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = config;
  if (address) {
    const { connectionOptions } = loadClientConnectConfig();
    return { temporal: { ...connectionOptions, address }, temporalUiUrl: config.TEMPORAL_UI_URL ?? null };
  }
  const temporal = await startTemporal({ dataDir, log, onLine: print, namespace });
  onStop(() => temporal.stop());
  print(`Temporal: ${temporal.adopted ? 'adopted the running server' : 'started'}`);
  return { temporal: { address: temporal.address }, temporalUiUrl: temporal.uiUrl };
}

async function loadCertificate(config: Config): Promise<Infrastructure['tls']> {
  const { FLEET_TLS_CERT: certFile, FLEET_TLS_KEY: keyFile, FLEET_MESH_URL: meshUrl } = config;
  const hosts = [config.FLEET_HOST, ...(meshUrl ? [new URL(meshUrl).hostname] : [])];
  const files =
    certFile && keyFile
      ? { certFile, keyFile, caFile: null }
      : await ensureCertificate({ dataDir: config.FLEET_DATA_DIR, hosts });
  const read = async () => {
    const [cert, key] = await Promise.all([readFile(files.certFile, 'utf8'), readFile(files.keyFile, 'utf8')]);
    return { cert, key };
  };
  return { ...(await read()), caFile: files.caFile, read };
}

/** The secret keys of the settings, else those of the data directory, which gets one where it has none. */
async function openSecretKeys(config: Config): Promise<Infrastructure['secretKeys']> {
  const { FLEET_SECRET_KEY: key, FLEET_PREVIOUS_SECRET_KEY: previous, FLEET_DATA_DIR: dataDir } = config;
  if (key !== undefined) return previous === undefined ? [key] : [key, previous];
  const newest = await loadOrCreateSecretKey(dataDir);
  return [newest, ...(await readSecretKeys(dataDir)).slice(1)];
}

/**
 * Opens the data directory, secret key, certificate, Postgres and Temporal. Everything that is running when this fails or is interrupted
 * has been passed to `onStop`.
 */
export async function openInfrastructure(options: InfrastructureOptions): Promise<Infrastructure> {
  const { config } = options;
  await mkdir(join(config.FLEET_DATA_DIR, 'logs'), { recursive: true, mode: 0o700 });
  if (!config.DATABASE_URL || !config.TEMPORAL_ADDRESS) {
    const lock = await lockDataDir(config.FLEET_DATA_DIR);
    options.onStop(async () => lock.release());
  }
  const secretKeys = await openSecretKeys(config);
  const tls = options.wantsTls ? await loadCertificate(config) : null;
  // In sequence: the first start of each one uses all cores of a small machine.
  const databaseUrl = await openPostgres(options);
  return { databaseUrl, ...(await openTemporal(options)), secretKeys, tls };
}
