import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { platformAuthor } from '../audit/record-audit.js';
import { createSignInLink } from '../auth/console-sessions.js';
import { ensureDefaultType } from '../auth/tenants.js';
import { onceReachable } from '../db/once-reachable.js';
import { rotateLog } from '../embedded/log-file.js';
import { describeEmbedder } from '../knowledge/embedding/choose.js';
import { type Config, readConfig } from '../runtime/config.js';
import { errorMessage } from '../runtime/errors.js';
import { createLogger, type LogCounts, type Logger, newLogCounts } from '../runtime/logger.js';
import { DEFAULT_EXAMPLE, EXAMPLES, startExamples, untilRegistered } from './examples.js';
import { type Infrastructure, openInfrastructure } from './infrastructure.js';
import { fillLibrary } from './library.js';
import { type Platform, startPlatform } from './platform.js';
import { type RunOptions, readArguments } from './roles/roles.js';
import { installTemporalRuntime } from './roles/temporal-runtime.js';
import { ensureCredential } from './seed.js';
import { StopList } from './stop-list.js';
import { removeDevFile, welcome, writeDevFile } from './welcome.js';

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
  #examples: ReturnType<typeof startExamples> | undefined;

  /** @param logFile null: the log goes to standard error */
  constructor(
    private readonly config: Config,
    private readonly run: RunOptions,
    private readonly log: Logger,
    private readonly logFile: string | null,
    private readonly metrics: { logCounts: LogCounts; temporalAddress: string },
  ) {}

  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  /** Stops everything; a second call waits for the same stop. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Waits for the current step of a start, so that what it starts is also stopped. */
  async #stop(): Promise<void> {
    await Promise.race([this.#starting.catch(() => undefined), delay(START_STEP_MS, undefined, { ref: false })]);
    await this.#stops.stop(0, this.log);
  }

  async #start(): Promise<void> {
    const { config, run, log } = this;
    const startedAt = Date.now();
    if (run.development) await removeDevFile(config.FLEET_DATA_DIR);
    const onStop = (stop: () => Promise<void>) => this.#stops.add(stop);
    const infrastructure = await openInfrastructure({ config, log, print, onStop, wantsTls: run.roles.has('mesh') });
    if (this.isStopping) return;
    // The examples stop after the platform, so that they can finish their work while it drains.
    onStop(async () => this.#examples?.stop());
    const platform = await startPlatform({ config, run, infrastructure, log, ...this.metrics });
    onStop(() => platform.stop(run.development ? DEVELOPMENT_GRACE_MS : PRODUCTION_GRACE_MS));
    if (this.isStopping) return;
    const { baseUrl, meshUrl, metricsUrl } = platform;
    if (run.development) await this.#welcome(platform, infrastructure);
    else print(`Ready: ${[...run.roles].join(', ')}; API ${baseUrl ?? 'elsewhere'}, mesh ${meshUrl ?? 'elsewhere'}`);
    if (!platform.services.temporalStart.isDone) {
      print(
        'Temporal cannot be used yet, and is tried again: the log says why. Quick messages are answered meanwhile.',
      );
    }
    const ready_in_ms = Date.now() - startedAt;
    log.info(
      { roles: [...run.roles], ready_in_ms, base_url: baseUrl, mesh_url: meshUrl, metrics_url: metricsUrl },
      'ready',
    );
  }

  /** Writes `dev.json`, which tells other programs that the platform is ready, and prints the addresses. */
  async #welcome(platform: Platform, infrastructure: Infrastructure): Promise<void> {
    const dataDir = this.config.FLEET_DATA_DIR;
    const first = await ensureCredential(platform.services, dataDir, 'credential');
    if (this.config.FLEET_EXAMPLES === 'on') await this.#startExamples(platform, infrastructure, first.tenant_id);
    const agents = await ensureCredential(platform.services, dataDir, 'agents', first.tenant_id);
    const signInLink = await onceReachable(
      () => createSignInLink(platform.services.db, first.tenant_id, first.client_id),
      this.log,
    );
    const devFile = await writeDevFile(dataDir, platform, infrastructure, { first, agents });
    this.#stops.add(() => removeDevFile(dataDir));
    print(welcome(platform, infrastructure, devFile, this.logFile, signInLink));
    print(describeEmbedder(platform.services.embedder, this.config));
    print('Ctrl-C gives running work up to 10 s to finish, then stops everything that was started here.');
  }

  async #startExamples(platform: Platform, infrastructure: Infrastructure, tenantId: string): Promise<void> {
    const { db } = platform.services;
    const dataDir = this.config.FLEET_DATA_DIR;
    const credential = await ensureCredential(platform.services, dataDir, 'examples', tenantId);
    const author = platformAuthor(tenantId, 'start');
    const ensureDefault = () => db.tenant(tenantId, (tx) => ensureDefaultType(tx, author, DEFAULT_EXAMPLE));
    await onceReachable(ensureDefault, this.log);
    const environment = {
      FLEET_BASE_URL: platform.baseUrl ?? '',
      FLEET_CLIENT_ID: credential.client_id,
      FLEET_CLIENT_SECRET: credential.client_secret,
      ...(infrastructure.tls?.caFile && { FLEET_CA_FILE: infrastructure.tls.caFile }),
    };
    print(`Example agents: started (${EXAMPLES.join(', ')})`);
    this.#examples = startExamples({ dataDir, environment, log: this.log });
    await onceReachable(() => untilRegistered(db, tenantId), this.log);
    void fillLibrary(platform.services, tenantId, credential.client_id);
  }
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

/** What cannot be printed, for example to a file on a full disk, ends nothing. */
function printOrNot(log: Logger): void {
  for (const [name, stream] of Object.entries({ stdout: process.stdout, stderr: process.stderr }))
    stream.on('error', (error) => log.warn({ stream: name, err: errorMessage(error) }, 'a line could not be printed'));
}

async function start(args: readonly string[]): Promise<void> {
  process.setSourceMapsEnabled(true);
  const run = readArguments(args);
  const config = readConfig(process.env);
  const ownsServers = !config.DATABASE_URL || !config.TEMPORAL_ADDRESS;
  const logFile = ownsServers || run.development ? join(config.FLEET_DATA_DIR, 'logs', 'platform.log') : null;
  const logCounts = newLogCounts();
  const log = createLogger({ level: config.FLEET_LOG_LEVEL, counts: logCounts, ...(logFile && { file: logFile }) });
  printOrNot(log);
  const temporalAddress = await installTemporalRuntime(log);
  const self = new PlatformProcess(config, run, log, logFile, { logCounts, temporalAddress });
  if (logFile) {
    const rotate = () =>
      rotateLog(logFile).catch((error: unknown) => log.warn({ err: errorMessage(error) }, 'log rotation failed'));
    setInterval(() => void rotate(), LOG_CHECK_MS).unref();
  }
  process.on('unhandledRejection', (reason) => log.error({ err: errorMessage(reason) }, 'unhandled rejection'));
  stopOnSignals(self, log);
  try {
    await self.start();
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
