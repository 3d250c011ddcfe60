import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureDefaultType } from '../auth/tenants.js';
import { rotateLog } from '../embedded/log-file.js';
import { type Config, readConfig } from '../runtime/config.js';
import { errorMessage } from '../runtime/errors.js';
import { createLogger, type Logger } from '../runtime/logger.js';
import { DEFAULT_EXAMPLE, EXAMPLES, startExamples, untilRegistered } from './examples.js';
import { type Infrastructure, openInfrastructure } from './infrastructure.js';
import { type Platform, startPlatform } from './platform.js';
import { type RunOptions, readArguments } from './roles.js';
import {
  ensureAgentCredential,
  ensureExampleCredential,
  ensureFirstCredential,
  type StoredCredential,
} from './seed.js';
import { StopList } from './stop-list.js';
import { removeDevFile, welcome, writeDevFile } from './welcome.js';
import { installTemporalRuntime } from './workers.js';

const DEVELOPMENT_GRACE_MS = 10_000;
const PRODUCTION_GRACE_MS = 30_000;
/** How long a stop waits for the current step of the start. Long enough to create a database; a longer installation is abandoned. */
const START_STEP_MS = 20_000;
const LOG_CHECK_MS = 30_000;

const print = (line: string) => process.stdout.write(`${line}\n`);

/** The platform process: starts the platform, and stops it once. */
class PlatformProcess {
  readonly #stops = new StopList();
  #starting: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(private readonly log: Logger) {}

  /** Runs the start. A stop meanwhile waits for the current step, so that it also stops what the step starts. */
  start(work: () => Promise<void>): Promise<void> {
    this.#starting = work();
    return this.#starting;
  }

  onStop(stop: () => Promise<void>): void {
    this.#stops.add(stop);
  }

  /** Stops everything; a second call waits for the same stop. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  async #stopAll(): Promise<void> {
    await Promise.race([this.#starting.catch(() => undefined), delay(START_STEP_MS, undefined, { ref: false })]);
    await this.#stops.stop(0, this.log);
  }
}

/** Everything that the steps of a start share. */
interface StartContext {
  config: Config;
  run: RunOptions;
  log: Logger;
  logFile: string | null;
  self: PlatformProcess;
}

/** Starts the example agents of `npm start`, unless they are switched off. */
async function runExamples(
  { config, log }: StartContext,
  { services, baseUrl }: Platform,
  infrastructure: Infrastructure,
  tenantId: string,
): Promise<{ stop(): Promise<void> } | undefined> {
  if (config.FLEET_EXAMPLES === 'off' || !baseUrl) return undefined;
  const credential = await ensureExampleCredential(services, config.FLEET_DATA_DIR, tenantId, EXAMPLES);
  await services.db.tenant(tenantId, (tx) => ensureDefaultType(tx, tenantId, DEFAULT_EXAMPLE));
  const environment = {
    FLEET_BASE_URL: baseUrl,
    FLEET_CLIENT_ID: credential.client_id,
    FLEET_CLIENT_SECRET: credential.client_secret,
    ...(infrastructure.tls?.caFile && { FLEET_CA_FILE: infrastructure.tls.caFile }),
  };
  print(`Example agents: started (${EXAMPLES.join(', ')})`);
  return startExamples({ dataDir: config.FLEET_DATA_DIR, environment, log });
}

/** Writes `dev.json`, which tells other programs that the platform is ready, and prints the addresses. */
async function announceReady(
  { config, logFile, self }: StartContext,
  platform: Platform,
  infrastructure: Infrastructure,
  first: StoredCredential,
): Promise<void> {
  const agents = await ensureAgentCredential(platform.services, config.FLEET_DATA_DIR, first.tenant_id);
  const devFile = await writeDevFile(config.FLEET_DATA_DIR, platform, infrastructure, { first, agents });
  self.onStop(() => removeDevFile(config.FLEET_DATA_DIR));
  print(welcome(platform, infrastructure, devFile, logFile));
  print('Ctrl-C gives running work up to 10 s to finish, then stops everything that was started here.');
}

async function startAll(context: StartContext): Promise<void> {
  const { config, run, log, self } = context;
  const startedAt = Date.now();
  if (run.development) await removeDevFile(config.FLEET_DATA_DIR);
  const onStop = (stop: () => Promise<void>) => self.onStop(stop);
  const infrastructure = await openInfrastructure({ config, log, print, onStop, wantsTls: run.roles.has('mesh') });
  if (self.isStopping) return;
  // The examples stop after the platform, so that they can finish their work while it drains.
  let examples: { stop(): Promise<void> } | undefined;
  onStop(async () => examples?.stop());
  const platform = await startPlatform({ config, run, infrastructure, log });
  onStop(() => platform.stop(run.development ? DEVELOPMENT_GRACE_MS : PRODUCTION_GRACE_MS));
  if (self.isStopping) return;
  const { baseUrl, meshUrl } = platform;
  if (run.development) {
    const credential = await ensureFirstCredential(platform.services, config.FLEET_DATA_DIR);
    examples = await runExamples(context, platform, infrastructure, credential.tenant_id);
    if (examples) await untilRegistered(platform.services.db, credential.tenant_id);
    await announceReady(context, platform, infrastructure, credential);
  } else {
    print(`Ready: ${[...run.roles].join(', ')}; API ${baseUrl ?? 'elsewhere'}, mesh ${meshUrl ?? 'elsewhere'}`);
  }
  const ready_in_ms = Date.now() - startedAt;
  log.info({ roles: [...run.roles], ready_in_ms, base_url: baseUrl, mesh_url: meshUrl }, 'ready');
}

function stopOnSignals(self: PlatformProcess, log: Logger): void {
  const onSignal = (signal: NodeJS.Signals) => {
    if (self.isStopping) {
      print('Already stopping; running work may still finish. (After a kill -9, the next start recovers.)');
      return;
    }
    print(`${signal}: draining and stopping`);
    log.info({ signal }, 'stopping');
    void self.stop().then(() => {
      print('Stopped.');
      process.exit(0);
    });
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
}

async function start(args: readonly string[]): Promise<void> {
  process.setSourceMapsEnabled(true);
  const run = readArguments(args);
  const config = readConfig(process.env);
  const ownsServers = !config.DATABASE_URL || !config.TEMPORAL_ADDRESS;
  const logFile = ownsServers || run.development ? join(config.FLEET_DATA_DIR, 'logs', 'platform.log') : null;
  const log = createLogger({ level: config.FLEET_LOG_LEVEL, ...(logFile && { file: logFile }) });
  installTemporalRuntime(log);
  const self = new PlatformProcess(log);
  if (logFile) {
    const rotate = () =>
      rotateLog(logFile).catch((error: unknown) => log.warn({ err: errorMessage(error) }, 'log rotation failed'));
    setInterval(() => void rotate(), LOG_CHECK_MS).unref();
  }
  process.on('unhandledRejection', (reason) => log.error({ err: errorMessage(reason) }, 'unhandled rejection'));
  stopOnSignals(self, log);
  try {
    await self.start(() => startAll({ config, run, log, logFile, self }));
  } catch (error) {
    log.fatal({ err: error instanceof Error ? error.stack : String(error) }, 'the platform did not start');
    await self.stop();
    throw error;
  }
}

/** Runs the platform until a signal stops it. When the start fails, prints the error in one line and exits with 1. */
export function main(args: readonly string[]): void {
  start(args).catch((error: unknown) => {
    process.stderr.write(`\nThe platform did not start: ${errorMessage(error)}\n`);
    process.exit(1);
  });
}
