import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { errorMessage } from '../../runtime/errors.js';
import { lastLines } from '../log-file.js';
import { processInfo } from '../process-table.js';
import { spawnServer } from '../spawn-server.js';
import { adopt, type Running, terminate } from '../supervisor.js';

/** The dev server exits cleanly on SIGTERM; its database survives SIGKILL. */
export const TEMPORAL_STOP: [NodeJS.Signals, number][] = [
  ['SIGTERM', 15_000],
  ['SIGKILL', 5_000],
];

/** For a server that does not answer. */
export const UNRESPONSIVE_STOP: [NodeJS.Signals, number][] = [
  ['SIGTERM', 2_000],
  ['SIGKILL', 5_000],
];

/** Time limits for a started server, for an adopted one, and for one call. */
const START_MS = 60_000;
const ADOPT_MS = 10_000;
const CALL_MS = 2_000;

const SEARCH_ATTRIBUTES = ['FleetTenant', 'FleetSession', 'FleetAgentType', 'FleetState', 'FleetError'];

/**
 * By default every queue is polled 20 times a second, so each step of a workflow waits up to 50 ms, and the database has no WAL, which
 * makes a send five times slower. A dev server also reads search attributes and namespace from its database at each use, about 16 times
 * for a message, instead of every two seconds; that is a quarter of its CPU time.
 */
const TUNING = [
  ...['journal_mode=wal', 'synchronous=normal'].flatMap((pragma) => ['--sqlite-pragma', pragma]),
  ...[
    'history.transferProcessorMaxPollRPS=2000',
    'history.timerProcessorMaxPollRPS=2000',
    'history.visibilityProcessorMaxPollRPS=2000',
    'history.outboundProcessorMaxPollRPS=2000',
    'system.forceSearchAttributesCacheRefreshOnRead=false',
    'matching.numTaskqueueReadPartitions=1',
    'matching.numTaskqueueWritePartitions=1',
  ].flatMap((value) => ['--dynamic-config-value', value]),
];

export interface TemporalServerOptions {
  binary: string;
  databaseFile: string;
  logFile: string;
  namespace: string;
}

export interface TemporalPorts {
  port: number;
  uiPort: number;
}

/** A panic of the server ends with the trace of its goroutine. */
const TRACE_LINES = 60;

/** Why the server ended, from the end of its log: the error of its panic, else the last lines. */
function reasonIn(log: string): string {
  return /^(?:panic|Error|error): .*$/m.exec(log)?.[0] ?? log.split('\n').slice(-3).join('\n');
}

/** Starts the dev server on the ports; resolves when it serves the namespace. Stops it before it rejects. */
export async function launchTemporal(
  options: TemporalServerOptions,
  ports: TemporalPorts,
  signal: AbortSignal,
): Promise<Running> {
  const running = await spawnServer({
    file: options.binary,
    args: serverArguments(options, ports),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TZ: 'UTC' },
    logFile: options.logFile,
  });
  try {
    await waitUntilReady(`127.0.0.1:${ports.port}`, options.namespace, running, START_MS, signal);
    return running;
  } catch (error) {
    await terminate(running, TEMPORAL_STOP);
    const detail = reasonIn(await lastLines(options.logFile, TRACE_LINES));
    throw new Error(`${errorMessage(error)}; the end of ${options.logFile}: ${detail}`, { cause: error });
  }
}

/** Adopts the dev server that an earlier process left running on the database. Stops one that does not answer. */
export async function adoptTemporal(
  options: Omit<TemporalServerOptions, 'binary'>,
  known: { pid: number; address: string },
  onLine: (line: string) => void,
): Promise<Running | undefined> {
  const info = await processInfo(known.pid);
  if (!info?.command.includes('server start-dev') || !info.command.includes(options.databaseFile)) return undefined;
  const running = await adopt(known.pid);
  if (!running) return undefined;
  try {
    await waitUntilReady(known.address, options.namespace, running, ADOPT_MS, new AbortController().signal);
    return running;
  } catch (error) {
    onLine(
      `Temporal (process ${known.pid}) is left over from an earlier run and cannot be used (${errorMessage(error)}); stopping it`,
    );
    await terminate(running, UNRESPONSIVE_STOP);
    return undefined;
  }
}

function serverArguments(options: TemporalServerOptions, { port, uiPort }: TemporalPorts): string[] {
  const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)];
  args.push('--db-filename', options.databaseFile, '--namespace', options.namespace, '--log-level', 'warn');
  return [...args, ...TUNING, ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`])];
}

async function waitUntilReady(
  address: string,
  namespace: string,
  running: Running,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  let ended: string | undefined;
  void running.ended.then((reason) => {
    ended = reason;
  });
  const began = performance.now();
  for (;;) {
    const refusal = await checkServer(address, namespace);
    if (refusal === undefined) return;
    if (ended !== undefined) throw new Error(`Temporal ended (${ended})`);
    signal.throwIfAborted();
    if (performance.now() - began > timeoutMs) throw new Error(`Temporal does not answer: ${refusal}`);
    await sleep(50);
  }
}

/** Why the server is not ready; undefined when it serves the namespace with its search attributes. */
export async function checkServer(address: string, namespace: string): Promise<string | undefined> {
  let connection: Connection | undefined;
  try {
    connection = await Connection.connect({ address, connectTimeout: CALL_MS });
    const open = connection;
    return await open.withDeadline(Date.now() + CALL_MS, async () => {
      await open.workflowService.describeNamespace({ namespace });
      const { customAttributes } = await open.operatorService.listSearchAttributes({ namespace });
      const missing = SEARCH_ATTRIBUTES.filter((name) => !customAttributes?.[name]);
      return missing.length > 0 ? `the search attribute ${missing[0]} is not registered` : undefined;
    });
  } catch (error) {
    return errorMessage(error);
  } finally {
    await connection?.close();
  }
}
