import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { userCacheDir } from '../runtime/cache-dir.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { readIfExists, writeAtomic } from './atomic-file.js';
import { freePort, isPortFree } from './free-port.js';
import { prepareLog, rotateLog } from './log-file.js';
import { type Running, Supervisor } from './supervisor.js';
import { temporalBinary } from './temporal/binary.js';
import {
  adoptTemporal,
  checkServer,
  launchTemporal,
  TEMPORAL_STOP,
  type TemporalPorts,
  type TemporalServerOptions,
  UNRESPONSIVE_STOP,
} from './temporal/server.js';

/**
 * How long a server may refuse every look before it is started again. On a machine without time to spare the dev server's SQLite can come
 * to answer "interrupted" to each statement, for good; nothing but a restart mends it, and nothing in its database is lost.
 */
const UNSERVED_MAX_MS = 60_000;

/** Options of `startTemporal`. Only one process may use a data directory: see `lockDataDir`. */
export interface TemporalOptions {
  dataDir: string;
  log: Logger;
  /** Prints a line for the person who started the platform. */
  onLine(line: string): void;
  /** `default` by default. Created when missing. */
  namespace?: string;
  /** Folder in which the program is searched and installed; the user's cache folder by default. */
  cacheDir?: string;
  /** How long the server may run without serving before it is started again, in milliseconds; a minute by default. */
  unservedMaxMs?: number;
}

/** A running Temporal dev server, which is restarted when it dies or no longer serves. */
export interface EmbeddedTemporal {
  /** `127.0.0.1:port` of the gRPC service. Constant across restarts. */
  readonly address: string;
  readonly uiUrl: string;
  /** Process id of the current server. */
  readonly pid: number;
  /** Whether it was already running, left by a platform that was killed. */
  readonly adopted: boolean;
  /** Resolves when the server has exited. */
  stop(): Promise<void>;
}

/** State that is kept between starts, in `temporal.json` of the data directory. */
interface TemporalState {
  pid: number;
  address: string;
  ui: string;
  started_at: string;
}

/** Starts a Temporal dev server on the data directory, or adopts one that still runs there, and restarts it when it dies or no longer serves. */
export async function startTemporal(options: TemporalOptions): Promise<EmbeddedTemporal> {
  const { log, onLine, namespace = 'default' } = options;
  await mkdir(options.dataDir, { recursive: true });
  const dataDir = await realpath(options.dataDir);
  const files = {
    databaseFile: join(dataDir, 'temporal.db'),
    logFile: join(dataDir, 'logs', 'temporal.log'),
    namespace,
  };
  const state = await readState(dataDir);
  const adopted = state && (await adoptTemporal(files, state, onLine));
  // Found on first use: an adopted server needs no program until it dies.
  const serverOptions = async (): Promise<TemporalServerOptions> => {
    const binary = await temporalBinary({ cacheDir: options.cacheDir ?? userCacheDir(), log, onLine });
    return { ...files, binary };
  };
  if (!adopted) await prepareLog(files.logFile);
  const { running, ports } =
    state && adopted
      ? { running: adopted, ports: portsOf(state) }
      : await firstLaunch(await serverOptions(), state && portsOf(state));
  if (!adopted) await writeState(dataDir, running.pid, ports);
  await keepPrivate(files.databaseFile);
  log.info({ pid: running.pid, ...ports, adopted: adopted !== undefined }, 'embedded Temporal is ready');
  const address = `127.0.0.1:${ports.port}`;
  const supervisor = new Supervisor(running, {
    name: 'Temporal',
    start: async (signal) => {
      const restarted = await launchTemporal(await serverOptions(), ports, signal);
      await writeState(dataDir, restarted.pid, ports);
      return restarted;
    },
    stopWith: TEMPORAL_STOP,
    watch: {
      check: () => checkServer(address, namespace),
      unservedMaxMs: options.unservedMaxMs ?? UNSERVED_MAX_MS,
      stopWith: UNRESPONSIVE_STOP,
    },
    housekeeping: () => rotateLog(files.logFile),
    log,
    onLine,
  });
  return {
    address,
    uiUrl: `http://127.0.0.1:${ports.uiPort}`,
    get pid() {
      return supervisor.pid;
    },
    adopted: adopted !== undefined,
    stop: () => supervisor.stop(),
  };
}

/** Makes the database readable only by this user, because histories show who talks to whom. The server does not use a file that was created before. */
async function keepPrivate(databaseFile: string): Promise<void> {
  for (const file of [databaseFile, `${databaseFile}-wal`, `${databaseFile}-shm`]) {
    await chmod(file, 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}

/** Starts on the preferred ports if they are free, and retries with new ones when a port was taken meanwhile. */
async function firstLaunch(
  options: TemporalServerOptions,
  preferred: TemporalPorts | undefined,
): Promise<{ running: Running; ports: TemporalPorts }> {
  let ports = { port: await freePort(preferred?.port), uiPort: await freePort(preferred?.uiPort) };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { running: await launchTemporal(options, ports, new AbortController().signal), ports };
    } catch (error) {
      // The server takes further ports, of its own choice, which another process may have taken in the same moment.
      const wasTaken = errorMessage(error).includes('address already in use');
      const free = !wasTaken && (await isPortFree(ports.port)) && (await isPortFree(ports.uiPort));
      if (free || attempt === 5) throw error;
      ports = { port: await freePort(), uiPort: await freePort() };
    }
  }
}

async function readState(dataDir: string): Promise<TemporalState | undefined> {
  const text = await readIfExists(join(dataDir, 'temporal.json'));
  return text === undefined ? undefined : (JSON.parse(text) as TemporalState);
}

async function writeState(dataDir: string, pid: number, { port, uiPort }: TemporalPorts): Promise<void> {
  const state: TemporalState = {
    pid,
    address: `127.0.0.1:${port}`,
    ui: `http://127.0.0.1:${uiPort}`,
    started_at: new Date().toISOString(),
  };
  await writeAtomic(join(dataDir, 'temporal.json'), `${JSON.stringify(state)}\n`, 0o600);
}

function portsOf({ address, ui }: TemporalState): TemporalPorts {
  return { port: Number(new URL(`tcp://${address}`).port), uiPort: Number(new URL(ui).port) };
}
