import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

function keyFile(dataDir: string): string {
  return join(dataDir, 'secret.key');
}

/** The key before the last rotation. */
function previousKeyFile(dataDir: string): string {
  return join(dataDir, 'secret.key.previous');
}

/** The key in the data directory; undefined when there is none. */
function readSecretKey(dataDir: string): Promise<string | undefined> {
  return readKey(keyFile(dataDir));
}

async function readKey(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The keys in the data directory, the newest first: one, two after a rotation, none in a new directory. */
export async function readSecretKeys(dataDir: string): Promise<string[]> {
  const keys = [await readSecretKey(dataDir), await readKey(previousKeyFile(dataDir))];
  return [...new Set(keys.filter((key) => key !== undefined))];
}

/** Replaces a file of mode 0600 at once. */
async function replaceKey(file: string, key: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  await writeFile(temporary, `${key}\n`, { flag: 'wx', mode: 0o600, flush: true });
  await rename(temporary, file);
}

/**
 * Puts a new key in the data directory and keeps the one that was there as the previous key, which is written first: at no time is a key
 * lost. The database goes on with the old key until `rotateSecretKey`.
 * @returns both keys, the new one first
 */
export async function renewSecretKey(dataDir: string): Promise<string[]> {
  const current = await readSecretKey(dataDir);
  if (current === undefined) throw new Error(`there is no ${keyFile(dataDir)}`);
  await replaceKey(previousKeyFile(dataDir), current);
  await replaceKey(keyFile(dataDir), randomBytes(32).toString('base64'));
  return readSecretKeys(dataDir);
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
