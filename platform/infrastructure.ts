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

/** How to reach a Temporal cluster, for the client and the worker alike. */
export type TemporalTarget = ReturnType<typeof loadClientConnectConfig>['connectionOptions'] & { address: string };

/** What the platform stands on. Given addresses replace the embedded servers. */
export interface Infrastructure {
  databaseUrl: string;
  temporal: TemporalTarget;
  temporalUiUrl: string | null;
  secretKey: string;
  /** Present where the mesh role runs. */
  tls: { cert: string; key: string; caFile: string | null } | null;
}

/** Shows a line to the person who started the platform. */
export type Say = (line: string) => void;

interface Means {
  config: Config;
  log: Logger;
  say: Say;
  /** Called for each server as soon as it runs, with what stops it. */
  onStop: (stop: () => Promise<void>) => void;
}

async function database({ config, log, say, onStop }: Means): Promise<string> {
  if (config.DATABASE_URL) return config.DATABASE_URL;
  const postgres = await startPostgres({ dataDir: config.FLEET_DATA_DIR, log, onLine: say });
  onStop(() => postgres.stop());
  say(postgres.adopted ? 'Postgres: adopted the one that still ran' : 'Postgres: started');
  return postgres.url;
}

async function cluster({ config, log, say, onStop }: Means): Promise<{ target: TemporalTarget; ui: string | null }> {
  if (config.TEMPORAL_ADDRESS) {
    const { connectionOptions } = loadClientConnectConfig();
    return { target: { ...connectionOptions, address: config.TEMPORAL_ADDRESS }, ui: config.TEMPORAL_UI_URL ?? null };
  }
  const temporal = await startTemporal({
    dataDir: config.FLEET_DATA_DIR,
    log,
    onLine: say,
    namespace: config.TEMPORAL_NAMESPACE,
  });
  onStop(() => temporal.stop());
  say(temporal.adopted ? 'Temporal: adopted the server that still ran' : 'Temporal: started');
  return { target: { address: temporal.address }, ui: temporal.uiUrl };
}

async function certificate(config: Config): Promise<NonNullable<Infrastructure['tls']>> {
  const given = config.FLEET_TLS_CERT && config.FLEET_TLS_KEY;
  const hosts = [config.FLEET_HOST, ...(config.FLEET_MESH_URL ? [new URL(config.FLEET_MESH_URL).hostname] : [])];
  const files = given
    ? { certFile: config.FLEET_TLS_CERT ?? '', keyFile: config.FLEET_TLS_KEY ?? '', caFile: null }
    : await ensureCertificate({ dataDir: config.FLEET_DATA_DIR, hosts });
  const [cert, key] = await Promise.all([readFile(files.certFile, 'utf8'), readFile(files.keyFile, 'utf8')]);
  return { cert, key, caFile: files.caFile };
}

/**
 * Brings up what the platform stands on: data directory, secret key, certificate, Postgres and Temporal. Whatever runs when this fails
 * or is interrupted has been given to `onStop`.
 * @param options.wantsTls whether the mesh role runs here
 */
export async function openInfrastructure(options: Means & { wantsTls: boolean }): Promise<Infrastructure> {
  const { config } = options;
  await mkdir(join(config.FLEET_DATA_DIR, 'logs'), { recursive: true, mode: 0o700 });
  if (!config.DATABASE_URL || !config.TEMPORAL_ADDRESS) {
    const lock = await lockDataDir(config.FLEET_DATA_DIR);
    options.onStop(async () => lock.release());
  }
  const secretKey = config.FLEET_SECRET_KEY ?? (await loadOrCreateSecretKey(config.FLEET_DATA_DIR));
  const tls = options.wantsTls ? await certificate(config) : null;
  // One after the other: both want the whole of a small machine when they start for the first time.
  const databaseUrl = await database(options);
  const { target, ui } = await cluster(options);
  return { databaseUrl, temporal: target, temporalUiUrl: ui, secretKey, tls };
}
