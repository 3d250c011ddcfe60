import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { checkSecretKey, SecretKeyMismatch } from '../auth/secret-check.js';
import { isDatabaseUnavailable } from '../db/errors.js';
import { type Db, openDb } from '../db/pool.js';
import { type Config, readConfig } from '../runtime/config.js';
import { errorMessage } from '../runtime/errors.js';
import { createLogger } from '../runtime/logger.js';
import { readSecretKeys, renewSecretKey } from '../runtime/secret-key.js';
import { createSecrets, type Secrets } from '../runtime/secrets.js';

/** An expected failure: the operator gets only its message, without a stack. */
export class CliError extends Error {}

/** The database and secrets that the commands use. */
export interface Store {
  db: Db;
  secrets: Secrets;
  /** The secret keys, the newest first. */
  keys: [string, ...string[]];
  /** Puts a new key in the data directory and gives all of them; null where the settings give the key. */
  renewKeys: (() => Promise<string[]>) | null;
}

const DevJson = z.object({ database_url: z.string() });
/** Postgres error code. */
const UNDEFINED_TABLE = '42P01';
const NO_DATABASE = 'The database does not answer. Start the platform with "npm start", or check DATABASE_URL.';
const NO_TABLES = 'The database has no tables of this platform yet. Start the platform once to create them.';

/** The database of the platform that runs with this data directory. */
async function databaseUrlOf(dataDir: string): Promise<string> {
  const file = join(dataDir, 'dev.json');
  try {
    return DevJson.parse(JSON.parse(await readFile(file, 'utf8'))).database_url;
  } catch (cause) {
    throw new CliError(
      `There is no running platform (${file} cannot be read). Start it with "npm start", or set DATABASE_URL, or FLEET_DATA_DIR.`,
      { cause },
    );
  }
}

function configFrom(environment: NodeJS.ProcessEnv): Config {
  try {
    return readConfig(environment);
  } catch (cause) {
    throw new CliError(errorMessage(cause), { cause });
  }
}

function asCliError(error: unknown): unknown {
  if (error instanceof SecretKeyMismatch) return new CliError(error.message, { cause: error });
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (isDatabaseUnavailable(cause)) return new CliError(NO_DATABASE, { cause });
  if ((cause as { code?: unknown }).code === UNDEFINED_TABLE) return new CliError(NO_TABLES, { cause });
  return error;
}

/**
 * Runs `work` with the database of `DATABASE_URL` or `dev.json`, after checking the secret key.
 * @throws CliError when there is no database, or the key is missing or wrong
 */
export async function withStore<T>(environment: NodeJS.ProcessEnv, work: (store: Store) => Promise<T>): Promise<T> {
  const config = configFrom(environment);
  const url = config.DATABASE_URL ?? (await databaseUrlOf(config.FLEET_DATA_DIR));
  const { FLEET_SECRET_KEY: given, FLEET_PREVIOUS_SECRET_KEY: previous, FLEET_DATA_DIR: dataDir } = config;
  const [key, ...others] = given ? [given, ...(previous ? [previous] : [])] : await readSecretKeys(dataDir);
  if (key === undefined) {
    throw new CliError(
      `The platform's secret key is required: set FLEET_SECRET_KEY, or FLEET_DATA_DIR to the directory of secret.key.`,
    );
  }
  const db = openDb({ url, max: 2, log: createLogger({ level: 'silent' }) });
  try {
    const secrets = createSecrets(key, others);
    await checkSecretKey(db, secrets);
    return await work({ db, secrets, keys: [key, ...others], renewKeys: given ? null : () => renewSecretKey(dataDir) });
  } catch (error) {
    throw asCliError(error);
  } finally {
    await db.close();
  }
}
