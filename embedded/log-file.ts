import { copyFile, mkdir, open, rename, rm, stat, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Bytes after which a log file of an embedded server is set aside as `<name>.1`, so each takes twice this at most. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;

/** Makes room for a server that is about to start: a file over the bound becomes `<name>.1`. Creates the folder. */
export async function prepareLog(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  if ((await sizeOf(path)) > MAX_LOG_BYTES) await rename(path, `${path}.1`);
}

/** Bounds the log of a running server, which holds the file open for appending: copied to `<name>.1`, then emptied. */
export async function boundLog(path: string): Promise<void> {
  if ((await sizeOf(path)) <= MAX_LOG_BYTES) return;
  await rm(`${path}.1`, { force: true });
  await copyFile(path, `${path}.1`);
  await truncate(path, 0);
}

/** The last lines of a log, at most the given number of them and 4 KiB; empty when there is no log. */
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
