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
import { removeDevFile, welcome, writeDevFile } from './welcome.js';
import { installTemporalRuntime } from './workers.js';

const DEVELOPMENT_GRACE_MS = 10_000;
const PRODUCTION_GRACE_MS = 30_000;
/** How long a stop waits for a step of the start: making a database takes less, installing a server is given up on. */
const START_STEP_MS = 20_000;

/** How often the log file's size is looked at. */
const LOG_CHECK_MS = 30_000;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** The process: what was started, in the order in which it is stopped again. */
class Process {
  readonly #undo: (() => Promise<void>)[] = [];
  #starting: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(private readonly log: Logger) {}

  /** Runs the start; a stop meanwhile waits for the step under way, so that nothing it starts is left behind. */
  start(work: () => Promise<void>): Promise<void> {
    this.#starting = work();
    return this.#starting;
  }

  onStop(step: () => Promise<void>): void {
    this.#undo.unshift(step);
  }

  /** Stops everything once; a second call waits for the first. */
  stop(): Promise<void> {
    this.#stopping ??= this.#undoAll();
    return this.#stopping;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  async #undoAll(): Promise<void> {
    await Promise.race([this.#starting.catch(() => undefined), delay(START_STEP_MS, undefined, { ref: false })]);
    for (let step = this.#undo.shift(); step; step = this.#undo.shift()) {
      await step().catch((error: unknown) =>
        this.log.error({ err: errorMessage(error) }, 'a part did not stop cleanly'),
      );
    }
  }
}

/** The example agents of `npm start`; nothing when they are switched off. */
async function runExamples(
  config: Config,
  platform: Platform,
  infrastructure: Infrastructure,
  credential: StoredCredential,
  log: Logger,
): Promise<{ stop(): Promise<void> } | undefined> {
  if (config.FLEET_EXAMPLES === 'off' || !platform.baseUrl) return undefined;
  const { services } = platform;
  const { tenant_id } = credential;
  const own = await ensureExampleCredential(services, config.FLEET_DATA_DIR, tenant_id, EXAMPLES);
  await services.db.tenant(tenant_id, (tx) => ensureDefaultType(tx, tenant_id, DEFAULT_EXAMPLE));
  const environment = {
    FLEET_BASE_URL: platform.baseUrl,
    FLEET_CLIENT_ID: own.client_id,
    FLEET_CLIENT_SECRET: own.client_secret,
    ...(infrastructure.tls?.caFile && { FLEET_CA_FILE: infrastructure.tls.caFile }),
  };
  say(`Example agents: started (${EXAMPLES.join(', ')})`);
  return startExamples({ dataDir: config.FLEET_DATA_DIR, environment, log });
}

/** Writes `dev.json`, the sign that everything is ready, and says where everything is. */
async function greet(
  config: Config,
  platform: Platform,
  infrastructure: Infrastructure,
  credential: StoredCredential,
  logFile: string | null,
  self: Process,
): Promise<void> {
  const { services } = platform;
  const agents = await ensureAgentCredential(services, config.FLEET_DATA_DIR, credential.tenant_id);
  const credentials = { first: credential, agents };
  const devFile = await writeDevFile(config.FLEET_DATA_DIR, platform, infrastructure, credentials);
  self.onStop(() => removeDevFile(config.FLEET_DATA_DIR));
  say(welcome(platform, infrastructure, devFile, logFile));
  say('Ctrl-C drains and stops everything that was started here.');
}

async function run(
  config: Config,
  options: RunOptions,
  log: Logger,
  logFile: string | null,
  self: Process,
): Promise<void> {
  const startedAt = Date.now();
  if (options.development) await removeDevFile(config.FLEET_DATA_DIR);
  const onStop = (stop: () => Promise<void>) => self.onStop(stop);
  const infrastructure = await openInfrastructure({ config, log, say, onStop, wantsTls: options.roles.has('mesh') });
  if (self.stopping) return;
  // After the platform, so that what the agents are doing may finish while it drains.
  let examples: { stop(): Promise<void> } | undefined;
  onStop(async () => examples?.stop());
  const platform = await startPlatform({ config, run: options, infrastructure, log });
  self.onStop(() => platform.stop(options.development ? DEVELOPMENT_GRACE_MS : PRODUCTION_GRACE_MS));
  if (self.stopping) return;
  if (options.development) {
    const credential = await ensureFirstCredential(platform.services, config.FLEET_DATA_DIR);
    examples = await runExamples(config, platform, infrastructure, credential, log);
    if (examples) await untilRegistered(platform.services.db, credential.tenant_id);
    await greet(config, platform, infrastructure, credential, logFile, self);
  } else {
    say(
      `Ready: ${[...options.roles].join(', ')}; API ${platform.baseUrl ?? 'elsewhere'}, mesh ${platform.meshUrl ?? 'elsewhere'}`,
    );
  }
  log.info(
    {
      roles: [...options.roles],
      ready_in_ms: Date.now() - startedAt,
      base_url: platform.baseUrl,
      mesh_url: platform.meshUrl,
    },
    'ready',
  );
}

function stopOnSignals(self: Process, log: Logger): void {
  const onSignal = (signal: NodeJS.Signals) => {
    if (self.stopping) {
      say('Stopping already: what is in flight may finish first. (After a kill -9, the next start puts things right.)');
      return;
    }
    say(`${signal}: draining and stopping`);
    log.info({ signal }, 'stopping');
    void self.stop().then(() => {
      say('Stopped.');
      process.exit(0);
    });
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
}

/** Keeps the log from filling the disk: past its bound it is set aside as `<name>.1` and begun anew. */
function boundInTime(logFile: string, log: Logger): void {
  const look = () =>
    rotateLog(logFile).catch((error: unknown) =>
      log.warn({ err: errorMessage(error) }, 'the log could not be bounded'),
    );
  setInterval(() => void look(), LOG_CHECK_MS).unref();
}

async function start(args: readonly string[]): Promise<void> {
  process.setSourceMapsEnabled(true);
  const options = readArguments(args);
  const config = readConfig(process.env);
  const ownsServers = !config.DATABASE_URL || !config.TEMPORAL_ADDRESS;
  const logFile = ownsServers || options.development ? join(config.FLEET_DATA_DIR, 'logs', 'platform.log') : null;
  const log = createLogger({ level: config.FLEET_LOG_LEVEL, ...(logFile && { file: logFile }) });
  installTemporalRuntime(log);
  const self = new Process(log);
  if (logFile) boundInTime(logFile, log);
  process.on('unhandledRejection', (reason) =>
    log.error({ err: errorMessage(reason) }, 'a promise was rejected and nobody listened'),
  );
  stopOnSignals(self, log);
  try {
    await self.start(() => run(config, options, log, logFile, self));
  } catch (error) {
    log.fatal({ err: error instanceof Error ? error.stack : String(error) }, 'the platform did not start');
    await self.stop();
    throw error;
  }
}

/** Runs the platform until it is stopped by a signal; what goes wrong at the start is said in one line, with exit code 1. */
export function main(args: readonly string[]): void {
  start(args).catch((error: unknown) => {
    process.stderr.write(`\nThe platform did not start: ${errorMessage(error)}\n`);
    process.exit(1);
  });
}
