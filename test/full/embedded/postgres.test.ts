import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test as it } from 'vitest';
import { type EmbeddedPostgres, startPostgres } from '../../../embedded/postgres.js';
import { processInfo } from '../../../embedded/process-table.js';
import { inOwnProcess, scratch, silent, WITHIN_A_MINUTE } from '../../embedded/host.js';
import { httpServer } from '../../runtime/loopback-server.js';
import { until } from '../../setup/until.js';
import { withClient } from '../../setup/with-client.js';

let folder: Awaited<ReturnType<typeof scratch>>;
let server: EmbeddedPostgres | undefined;
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

async function start(): Promise<EmbeddedPostgres> {
  server = await startPostgres({ dataDir: folder.dir, log: silent, onLine: (line) => lines.push(line) });
  return server;
}

const query = (url: string, sql: string): Promise<unknown> =>
  withClient(url, async (client) => (await client.query({ text: sql, rowMode: 'array' })).rows[0]?.[0]);

/** The answer once the server gives one: while it restarts, connections are refused. */
const queryWhenBack = (url: string, sql: string): Promise<unknown> => until(() => query(url, sql), WITHIN_A_MINUTE);

describe('embedded Postgres', () => {
  it('keeps its data, port and password from one start to the next', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as n');
    expect(await query(first.url, 'show server_encoding')).toBe('UTF8');
    expect(first.url).toMatch(/^postgres:\/\/postgres:.+@127\.0\.0\.1:\d+\/fleet$/);
    expect((await stat(join(folder.dir, 'postgres.json'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(folder.dir, 'logs', 'postgres.log'), 'utf8')).toContain('ready to accept connections');
    await first.stop();
    expect(await processInfo(first.pid)).toBeUndefined();
    const second = await start();
    expect(second).toMatchObject({ url: first.url, adopted: false });
    expect(await query(second.url, 'select n from kept')).toBe(42);
  });

  it('refuses another password', async () => {
    const url = new URL((await start()).url);
    url.password = 'wrong';
    await expect(query(url.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  it('is started again on the same address after its postmaster is killed', async () => {
    const running = await start();
    await query(running.url, 'create table kept as select 42 as n');
    const before = running.pid;
    process.kill(before, 'SIGKILL');
    await until(() => running.pid !== before, WITHIN_A_MINUTE);
    expect(await queryWhenBack(running.url, 'select n from kept')).toBe(42);
    expect(lines).toContain('Postgres exited unexpectedly (signal SIGKILL); restarting it');
  });

  it('is adopted by the next process after the first one was killed, then watched and stopped by it', async () => {
    const module = `
      import { startPostgres } from './embedded/postgres.js';
      import { createLogger } from './runtime/logger.js';
      const log = createLogger({ level: 'silent' });
      const { url, pid } = await startPostgres({ dataDir: process.argv[2] ?? '', log, onLine: () => undefined });
      console.log(JSON.stringify({ url, pid }));
    `;
    const other = await inOwnProcess(module, folder.dir);
    await other.kill();
    const left = JSON.parse(other.line) as { url: string; pid: number };
    const running = await start();
    expect(running).toMatchObject({ ...left, adopted: true });
    process.kill(left.pid, 'SIGKILL');
    await until(() => running.pid !== left.pid, WITHIN_A_MINUTE);
    expect(await queryWhenBack(running.url, 'select 1')).toBe(1);
    const last = running.pid;
    await running.stop();
    expect(await processInfo(last)).toBeUndefined();
  });

  it('an adopted postmaster is stopped', async () => {
    const first = await start();
    const second = await startPostgres({ dataDir: folder.dir, log: silent, onLine: () => undefined });
    expect(second).toMatchObject({ adopted: true, pid: first.pid });
    await Promise.all([first.stop(), second.stop()]);
    expect(await processInfo(first.pid)).toBeUndefined();
  });

  it('throws away a half-made database', async () => {
    const half = join(folder.dir, 'postgres', 'initdb-interrupted', 'data');
    await mkdir(half, { recursive: true });
    await writeFile(join(half, 'PG_VERSION'), '18\n');
    const running = await start();
    expect(await query(running.url, 'select 1')).toBe(1);
    expect(await readdir(join(folder.dir, 'postgres'))).toEqual(['data']);
  });

  it.each(['another program', 'a process that has ended'])('starts over a lock file that names %s', async (holder) => {
    const first = await start();
    await first.stop();
    const bystander = spawn('sleep', ['600'], { stdio: 'ignore' });
    await once(bystander, 'spawn');
    if (holder !== 'another program') {
      bystander.kill('SIGKILL');
      await once(bystander, 'exit');
    }
    const directory = join(folder.dir, 'postgres', 'data');
    const content = [bystander.pid, directory, 1_700_000_000, new URL(first.url).port, '', '127.0.0.1', '1 1', 'ready'];
    await writeFile(join(directory, 'postmaster.pid'), `${content.join('\n')}\n`);
    const second = await start();
    expect(second.adopted).toBe(false);
    expect(await query(second.url, 'select 1')).toBe(1);
    bystander.kill('SIGKILL');
  });

  it('starts over a lock file that was cut short', async () => {
    await (await start()).stop();
    await writeFile(join(folder.dir, 'postgres', 'data', 'postmaster.pid'), '');
    expect(await query((await start()).url, 'select 1')).toBe(1);
  });

  it('takes another port when the remembered one is in use', async () => {
    const first = await start();
    await first.stop();
    await httpServer(() => undefined, Number(new URL(first.url).port));
    const second = await start();
    expect(second.url).not.toBe(first.url);
    expect(await query(second.url, 'select 1')).toBe(1);
  });

  it('says what is missing when the password file is gone', async () => {
    await (await start()).stop();
    server = undefined;
    await rm(join(folder.dir, 'postgres.json'));
    await expect(start()).rejects.toThrow(/postgres\.json, which holds the password/);
  });

  it('several starts at once do not disturb each other', async () => {
    const folders = await Promise.all([scratch(), scratch()]);
    const servers = await Promise.all(
      folders.map(({ dir }) => startPostgres({ dataDir: dir, log: silent, onLine: () => undefined })),
    );
    for (const each of servers) expect(await query(each.url, 'select 1')).toBe(1);
    await Promise.all(servers.map((each) => each.stop()));
    await Promise.all(folders.map((each) => each.remove()));
  });
});
