import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { lockDataDir, tryLock, waitForLock } from '../../embedded/lock-file.js';
import { processInfo } from '../../embedded/process-table.js';
import { inOwnProcess, scratch } from './host.js';

let folder: Awaited<ReturnType<typeof scratch>>;

beforeEach(async () => {
  folder = await scratch();
});

afterEach(() => folder.remove());

const HOLDER = `
  import { lockDataDir } from './embedded/lock-file.js';
  await lockDataDir(process.argv[2] ?? '');
  console.log(process.pid);
  setInterval(() => undefined, 1000);
`;

describe('lock of the data directory', () => {
  test('names the process that holds it, and is free once that process was killed', async () => {
    const other = await inOwnProcess(HOLDER, folder.dir);
    await expect(lockDataDir(folder.dir)).rejects.toThrow(`in use by process ${other.line}`);
    await other.kill();
    await (await lockDataDir(folder.dir)).release();
    expect(await readdir(folder.dir)).toEqual([]);
  });

  test('is free when its pid belongs to another program by now', async () => {
    const content = { pid: process.pid, startedAt: 'another time', since: '', nonce: 'old' };
    await writeFile(join(folder.dir, 'platform.lock'), JSON.stringify(content));
    await (await lockDataDir(folder.dir)).release();
    expect(await readdir(folder.dir)).toEqual([]);
  });

  test('is free when its content is damaged', async () => {
    await writeFile(join(folder.dir, 'platform.lock'), '{"pid":');
    await (await lockDataDir(folder.dir)).release();
    expect(await readdir(folder.dir)).toEqual([]);
  });

  test('is taken by exactly one of many that find it stale at once', async () => {
    const path = join(folder.dir, 'x.lock');
    await writeFile(path, JSON.stringify({ pid: 2 ** 30, startedAt: '1', since: '', nonce: 'old' }));
    const answers = await Promise.all(Array.from({ length: 20 }, () => tryLock(path)));
    expect(answers.filter((answer) => 'release' in answer)).toHaveLength(1);
  });

  test('passes from one waiter to the next', async () => {
    const path = join(folder.dir, 'x.lock');
    let inside = 0;
    let most = 0;
    const work = async () => {
      const lock = await waitForLock(path, () => undefined);
      inside += 1;
      most = Math.max(most, inside);
      await new Promise(setImmediate);
      inside -= 1;
      await lock.release();
    };
    await Promise.all(Array.from({ length: 5 }, work));
    expect(most).toBe(1);
  });
});

describe('process table', () => {
  test('knows this process, and nothing under a pid that nobody has', async () => {
    expect((await processInfo(process.pid))?.command).toContain('node');
    expect(await processInfo(2 ** 30)).toBeUndefined();
    expect(await processInfo(-1)).toBeUndefined();
  });

  test.runIf(process.platform === 'linux')('takes a zombie for ended', async () => {
    // The child ends after another program took the place of its parent, the shell: that one never collects it.
    const parent = spawn('/bin/sh', ['-c', 'sleep 600 & echo $!; exec tail -f /dev/null'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void parent.kill('SIGKILL'));
    const [printed] = (await once(parent.stdout, 'data')) as [Buffer];
    const child = Number(printed.toString());
    await expect.poll(async () => (await processInfo(parent.pid ?? 0))?.command).toMatch(/^tail /);
    await expect.poll(async () => (await processInfo(child))?.command).toMatch(/^sleep /);
    process.kill(child, 'SIGKILL');
    await expect.poll(() => processInfo(child)).toBeUndefined();
    expect(() => process.kill(child, 0)).not.toThrow();
  });
});
