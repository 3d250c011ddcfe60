import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { ensureCertificate } from '../embedded/certificate.js';
import { lockDataDir } from '../embedded/lock-file.js';
import { startPostgres } from '../embedded/postgres.js';
import { startTemporal } from '../embedded/temporal.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import { loadOrCreateSecretKey } from '../runtime/secret-key.js';

/** Connection options for a Temporal cluster, for the client and the worker. */
export type TemporalTarget = ReturnType<typeof loadClientConnectConfig>['connectionOptions'] & { address: string };

/** The servers and keys that the platform uses. Configured addresses replace the embedded servers. */
export interface Infrastructure {
  databaseUrl: string;
  temporal: TemporalTarget;
  temporalUiUrl: string | null;
  secretKey: string;
  /** Set when the mesh role runs in this process. */
  tls: { cert: string; key: string; caFile: string | null } | null;
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
  print(postgres.adopted ? 'Postgres: adopted the running server' : 'Postgres: started');
  return postgres.url;
}

async function openTemporal({
  config,
  log,
  print,
  onStop,
}: InfrastructureOptions): Promise<{ target: TemporalTarget; ui: string | null }> {
  if (config.TEMPORAL_ADDRESS) {
    const { connectionOptions } = loadClientConnectConfig();
    return { target: { ...connectionOptions, address: config.TEMPORAL_ADDRESS }, ui: config.TEMPORAL_UI_URL ?? null };
  }
  const temporal = await startTemporal({
    dataDir: config.FLEET_DATA_DIR,
    log,
    onLine: print,
    namespace: config.TEMPORAL_NAMESPACE,
  });
  onStop(() => temporal.stop());
  print(temporal.adopted ? 'Temporal: adopted the running server' : 'Temporal: started');
  return { target: { address: temporal.address }, ui: temporal.uiUrl };
}

async function loadCertificate(config: Config): Promise<NonNullable<Infrastructure['tls']>> {
  const isConfigured = config.FLEET_TLS_CERT && config.FLEET_TLS_KEY;
  const hosts = [config.FLEET_HOST, ...(config.FLEET_MESH_URL ? [new URL(config.FLEET_MESH_URL).hostname] : [])];
  const files = isConfigured
    ? { certFile: config.FLEET_TLS_CERT ?? '', keyFile: config.FLEET_TLS_KEY ?? '', caFile: null }
    : await ensureCertificate({ dataDir: config.FLEET_DATA_DIR, hosts });
  const [cert, key] = await Promise.all([readFile(files.certFile, 'utf8'), readFile(files.keyFile, 'utf8')]);
  return { cert, key, caFile: files.caFile };
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
  const secretKey = config.FLEET_SECRET_KEY ?? (await loadOrCreateSecretKey(config.FLEET_DATA_DIR));
  const tls = options.wantsTls ? await loadCertificate(config) : null;
  // In sequence: the first start of each one uses all cores of a small machine.
  const databaseUrl = await openPostgres(options);
  const { target, ui } = await openTemporal(options);
  return { databaseUrl, temporal: target, temporalUiUrl: ui, secretKey, tls };
}
