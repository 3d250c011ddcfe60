import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { processInfo } from '../../../embedded/process-table.js';
import { temporalBinary } from '../../../embedded/temporal/binary.js';
import { type EmbeddedTemporal, startTemporal } from '../../../embedded/temporal.js';
import { userCacheDir } from '../../../runtime/cache-dir.js';
import { inOwnProcess, scratch, silent, WITHIN_A_MINUTE } from '../../embedded/host.js';
import { until } from '../../setup/until.js';

let folder: Awaited<ReturnType<typeof scratch>>;
let server: EmbeddedTemporal | undefined;
let lines: string[] = [];

beforeEach(async () => {
  folder = await scratch();
  lines = [];
});

afterEach(async () => {
  await server?.stop();
  server = undefined;
  await folder.remove();
});

async function start(unservedMaxMs?: number): Promise<EmbeddedTemporal> {
  const onLine = (line: string) => lines.push(line);
  server = await startTemporal({ dataDir: folder.dir, log: silent, onLine, ...(unservedMaxMs && { unservedMaxMs }) });
  return server;
}

async function withClient<T>(address: string, use: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await use(new Client({ connection }));
  } finally {
    await connection.close();
  }
}

/** A server whose platform was killed. */
async function leftOver(): Promise<{ address: string; pid: number }> {
  const module = `
    import { startTemporal } from './embedded/temporal.js';
    import { createLogger } from './runtime/logger.js';
    const log = createLogger({ level: 'silent' });
    const { address, pid } = await startTemporal({ dataDir: process.argv[2] ?? '', log, onLine: () => undefined });
    console.log(JSON.stringify({ address, pid }));
  `;
  const other = await inOwnProcess(module, folder.dir);
  await other.kill();
  return JSON.parse(other.line) as { address: string; pid: number };
}

const startWaiting = (client: Client) =>
  client.workflow.start('workflowWithoutWorker', { taskQueue: 'none', workflowId: 'kept', args: [] });

const describeWaiting = (client: Client) => client.workflow.getHandle('kept').describe();

describe('embedded Temporal', () => {
  test('keeps workflows and addresses from one start to the next, with its search attributes and UI', async () => {
    const first = await start();
    await withClient(first.address, startWaiting);
    const { customAttributes } = await withClient(first.address, (client) =>
      client.connection.operatorService.listSearchAttributes({ namespace: 'default' }),
    );
    expect(Object.keys(customAttributes ?? {})).toEqual(
      expect.arrayContaining(['FleetTenant', 'FleetSession', 'FleetAgentType', 'FleetState', 'FleetError']),
    );
    expect((await fetch(first.uiUrl)).status).toBe(200);
    await first.stop();
    expect(await processInfo(first.pid)).toBeUndefined();
    const second = await start();
    expect(second).toMatchObject({ address: first.address, uiUrl: first.uiUrl, adopted: false });
    expect((await withClient(second.address, describeWaiting)).status.name).toBe('RUNNING');
  });

  test('is started again on the same address after it is killed, and keeps its workflows', async () => {
    const running = await start();
    await withClient(running.address, startWaiting);
    const before = running.pid;
    process.kill(before, 'SIGKILL');
    await until(() => running.pid !== before, WITHIN_A_MINUTE);
    expect((await withClient(running.address, describeWaiting)).status.name).toBe('RUNNING');
    expect(lines).toContain('Temporal exited unexpectedly (signal SIGKILL); restarting it');
  });

  test('is started again on the same address when it runs and no longer serves', async () => {
    const running = await start(1_000);
    await withClient(running.address, startWaiting);
    const before = running.pid;
    process.kill(before, 'SIGSTOP');
    await until(() => running.pid !== before, WITHIN_A_MINUTE);
    expect((await withClient(running.address, describeWaiting)).status.name).toBe('RUNNING');
    expect(lines.join('\n')).toMatch(
      /Temporal has not served for \d+ s \(.+\); stopping it\nTemporal has stopped; starting it again/,
    );
    expect(await processInfo(before)).toBeUndefined();
  });

  test('is adopted by the next process after the first one was killed, then watched and stopped by it', async () => {
    const left = await leftOver();
    const running = await start();
    expect(running).toMatchObject({ ...left, adopted: true });
    process.kill(left.pid, 'SIGKILL');
    await until(() => running.pid !== left.pid, WITHIN_A_MINUTE);
    const remembered = JSON.parse(await readFile(join(folder.dir, 'temporal.json'), 'utf8')) as { pid: number };
    expect(remembered.pid).toBe(running.pid);
    await running.stop();
    expect(await processInfo(running.pid)).toBeUndefined();
  });

  test('a left-over server that does not answer is replaced', async () => {
    const left = await leftOver();
    process.kill(left.pid, 'SIGSTOP');
    const running = await start();
    expect(running.adopted).toBe(false);
    expect(lines.join('\n')).toContain(
      `Temporal (process ${left.pid}) is left over from an earlier run and cannot be used`,
    );
    expect(await processInfo(left.pid)).toBeUndefined();
  });

  test('is not mistaken for another process that has its pid by now', async () => {
    await writeFile(
      join(folder.dir, 'temporal.json'),
      JSON.stringify({ pid: process.pid, address: '127.0.0.1:1', ui: 'http://127.0.0.1:2', started_at: '' }),
    );
    expect((await start()).adopted).toBe(false);
  });

  test('passes over a program that does not run', async () => {
    const broken = join(folder.dir, 'temporal');
    await writeFile(broken, '#!/bin/sh\nexit 3\n');
    await chmod(broken, 0o755);
    process.env.TEMPORAL_CLI_PATH = broken;
    try {
      const lookup = { cacheDir: userCacheDir(), log: silent, onLine: (line: string) => lines.push(line) };
      expect(await temporalBinary(lookup)).not.toBe(broken);
    } finally {
      delete process.env.TEMPORAL_CLI_PATH;
    }
    expect(lines[0]).toContain(`${broken} does not run: `);
  });
});
