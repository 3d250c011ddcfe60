import { copyFile, mkdir, open, rename, rm, stat, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Size limit of a log file. A larger one is moved to `<name>.1`, so a log takes at most twice this size. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;

/** Rotates the log of a server that is about to start: a file over the limit becomes `<name>.1`. Creates the folder. */
export async function prepareLog(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  if ((await sizeOf(path)) > MAX_LOG_BYTES) await rename(path, `${path}.1`);
}

/** Rotates the log of a running server, which has the file open for appending: copies it to `<name>.1`, then truncates it. */
export async function rotateLog(path: string): Promise<void> {
  if ((await sizeOf(path)) <= MAX_LOG_BYTES) return;
  await rm(`${path}.1`, { force: true });
  await copyFile(path, `${path}.1`);
  await truncate(path, 0);
}

/** The last `count` lines of a log, at most 4 KiB; empty without a log. */
export async function lastLines(path: string, count: number): Promise<string> {
  const size = await sizeOf(path);
  if (size === 0) return '';
  const file = await open(path, 'r');
  try {
    const length = Math.min(size, 4096);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.subarray(0, bytesRead).toString('utf8').trimEnd().split('\n').slice(-count).join('\n');
  } finally {
    await file.close();
  }
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return found?.size ?? 0;
}
