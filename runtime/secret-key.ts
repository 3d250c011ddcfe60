import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

function keyFile(dataDir: string): string {
  return join(dataDir, 'secret.key');
}

/** The key in the data directory; undefined when there is none. */
export async function readSecretKey(dataDir: string): Promise<string | undefined> {
  try {
    return (await readFile(keyFile(dataDir), 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Reads the key in the data directory, or creates it there (mode 0600). Two processes that do this at once get the same key. */
export async function loadOrCreateSecretKey(dataDir: string): Promise<string> {
  const existing = await readSecretKey(dataDir);
  if (existing !== undefined) return existing;
  await mkdir(dataDir, { recursive: true });
  const temporary = `${keyFile(dataDir)}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const key = `${randomBytes(32).toString('base64')}\n`;
    await writeFile(temporary, key, { flag: 'wx', mode: 0o600, flush: true });
    // A link, unlike a rename, never replaces a key that another process created first.
    await link(temporary, keyFile(dataDir)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary, { force: true });
  }
  const key = await readSecretKey(dataDir);
  if (key === undefined) throw new Error(`${keyFile(dataDir)} was removed while it was being created`);
  return key;
}
