import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../runtime/logger.js';
import { readIfExists, writeAtomic } from './atomic-file.js';
import { userCacheDir } from './cache-dir.js';
import { freePort, isPortFree } from './free-port.js';
import { boundLog, prepareLog } from './log-file.js';
import { type Running, Supervisor } from './supervisor.js';
import { temporalBinary } from './temporal/binary.js';
import {
  adoptTemporal,
  launchTemporal,
  TEMPORAL_STOP,
  type TemporalPorts,
  type TemporalServerOptions,
} from './temporal/server.js';

/** What `startTemporal` needs. One process at a time per data directory: see `lockDataDir`. */
export interface TemporalOptions {
  dataDir: string;
  log: Logger;
  /** Shows a line to the person who started the platform. */
  onLine(line: string): void;
  /** `default` when absent. Made when missing. */
  namespace?: string;
  /** Where the program is looked for and installed; the user's cache folder when absent. */
  cacheDir?: string;
}

/** A Temporal dev server that runs and is kept running. */
export interface EmbeddedTemporal {
  /** `127.0.0.1:port` of its gRPC service. Stays the same while it runs. */
  readonly address: string;
  readonly uiUrl: string;
  /** Its process id now; another one after a restart. */
  readonly pid: number;
  /** Whether it already ran, left over from a process that was killed. */
  readonly adopted: boolean;
  /** Resolves when it has ended. */
  stop(): Promise<void>;
}

/** What is remembered between starts, in `temporal.json` of the data directory. */
interface TemporalMemory {
  pid: number;
  address: string;
  ui: string;
  started_at: string;
}

/** Starts a Temporal dev server on the data directory, or adopts the one that still runs there, and keeps it running. */
export async function startTemporal(options: TemporalOptions): Promise<EmbeddedTemporal> {
  const { log, onLine, namespace = 'default' } = options;
  await mkdir(options.dataDir, { recursive: true });
  const dataDir = await realpath(options.dataDir);
  const place = {
    databaseFile: join(dataDir, 'temporal.db'),
    logFile: join(dataDir, 'logs', 'temporal.log'),
    namespace,
  };
  const memory = await readMemory(dataDir);
  const adopted = memory && (await adoptTemporal(place, memory, onLine));
  // Looked up when it is first needed: an adopted server does not need the program until it dies.
  const serverOptions = async (): Promise<TemporalServerOptions> => {
    const binary = await temporalBinary({ cacheDir: options.cacheDir ?? userCacheDir(), log, onLine });
    return { ...place, binary };
  };
  if (!adopted) await prepareLog(place.logFile);
  const { running, ports } =
    memory && adopted
      ? { running: adopted, ports: portsOf(memory) }
      : await firstLaunch(await serverOptions(), memory && portsOf(memory));
  if (!adopted) await writeMemory(dataDir, running.pid, ports);
  await keepPrivate(place.databaseFile);
  log.info({ pid: running.pid, ...ports, adopted: adopted !== undefined }, 'embedded Temporal is ready');
  const supervisor = new Supervisor(running, {
    name: 'Temporal',
    start: async (signal) => {
      const again = await launchTemporal(await serverOptions(), ports, signal);
      await writeMemory(dataDir, again.pid, ports);
      return again;
    },
    stopWith: TEMPORAL_STOP,
    housekeeping: () => boundLog(place.logFile),
    log,
    onLine,
  });
  return {
    address: `127.0.0.1:${ports.port}`,
    uiUrl: `http://127.0.0.1:${ports.uiPort}`,
    get pid() {
      return supervisor.pid;
    },
    adopted: adopted !== undefined,
    stop: () => supervisor.stop(),
  };
}

/** For this user only: histories hold who talks to whom. The server makes its files itself, and would not fill one it finds. */
async function keepPrivate(databaseFile: string): Promise<void> {
  for (const file of [databaseFile, `${databaseFile}-wal`, `${databaseFile}-shm`]) {
    await chmod(file, 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}

/** On the remembered ports where they are free; on new ones when somebody takes one of them meanwhile. */
async function firstLaunch(
  options: TemporalServerOptions,
  remembered: TemporalPorts | undefined,
): Promise<{ running: Running; ports: TemporalPorts }> {
  let ports = { port: await freePort(remembered?.port), uiPort: await freePort(remembered?.uiPort) };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { running: await launchTemporal(options, ports, new AbortController().signal), ports };
    } catch (error) {
      const free = (await isPortFree(ports.port)) && (await isPortFree(ports.uiPort));
      if (free || attempt === 5) throw error;
      ports = { port: await freePort(), uiPort: await freePort() };
    }
  }
}

async function readMemory(dataDir: string): Promise<TemporalMemory | undefined> {
  const text = await readIfExists(join(dataDir, 'temporal.json'));
  return text === undefined ? undefined : (JSON.parse(text) as TemporalMemory);
}

async function writeMemory(dataDir: string, pid: number, { port, uiPort }: TemporalPorts): Promise<void> {
  const memory: TemporalMemory = {
    pid,
    address: `127.0.0.1:${port}`,
    ui: `http://127.0.0.1:${uiPort}`,
    started_at: new Date().toISOString(),
  };
  await writeAtomic(join(dataDir, 'temporal.json'), `${JSON.stringify(memory)}\n`, 0o600);
}

function portsOf({ address, ui }: TemporalMemory): TemporalPorts {
  return { port: Number(new URL(`tcp://${address}`).port), uiPort: Number(new URL(ui).port) };
}
