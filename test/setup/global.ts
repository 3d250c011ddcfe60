import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { FUNCTION_SCHEMA, migrate } from '../../db/migrate.js';
import { createLogger } from '../../runtime/logger.js';
import { testLevels } from './levels.js';
import { killRegistered } from './platform/process-tree.js';
import { databaseUrl, withClient } from './with-client.js';

/** The addresses that `inject` gives to every test file. */
declare module 'vitest' {
  export interface ProvidedContext {
    /** A login that may create databases; its own database is not used. */
    postgresUrl: string;
    /** The migrated database that every file's own is a copy of. */
    templateDatabase: string;
    temporalAddress: string;
    /** The folder of this run: data directories, the register of started processes. Removed at the end. */
    runDir: string;
  }
}

const run = promisify(execFile);

/** A run of plain tests starts nothing. */
async function needsServers(project: TestProject): Promise<boolean> {
  const { root } = project.config;
  const { filenamePattern } = project.vitest as unknown as { filenamePattern?: string[] }; // what was asked for by name
  const { testFiles } = await project.globTestFiles(filenamePattern);
  const levels = testLevels(root);
  return testFiles.some((file) => levels.get(relative(root, file)) !== 'unit');
}

async function buildIfStale(root: string): Promise<void> {
  const sources = (await import(join(root, 'scripts', 'sources.mjs'))) as { isBuilt(root: string): boolean };
  if (!sources.isBuilt(root)) await run(process.execPath, [join(root, 'scripts', 'build.mjs')]);
}

/** Has the closing lines of `npm test` name an error, which vitest only prints at the end of a run. */
async function noteError(root: string, error: unknown): Promise<void> {
  const report = (await import(join(root, 'scripts', 'test', 'report.mjs'))) as {
    noteOutsideError(error: unknown, type: string): void;
  };
  report.noteOutsideError(error, 'global teardown');
}

/** Drops what files or workers of this run left on a server that outlives it. */
async function dropDatabases(url: string, list: string): Promise<void> {
  const names = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n') : [];
  await withClient(url, async (client) => {
    for (const name of names) await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
}

/**
 * The migrated database that every file's own is a copy of. Its name says which migrations and functions it has, so that several runs may share
 * one server. @returns its name
 */
async function createTemplate(postgresUrl: string, root: string): Promise<string> {
  const migrations = join(root, 'db', 'migrations');
  const digest = createHash('sha256').update(FUNCTION_SCHEMA);
  for (const file of readdirSync(migrations).sort()) digest.update(file).update(readFileSync(join(migrations, file)));
  const name = `fleet_template_${digest.digest('hex').slice(0, 12)}`;
  const draft = `${name}_${randomBytes(4).toString('hex')}`;
  await withClient(postgresUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [name]); // another run may make the same
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount) return;
    await client.query(`CREATE DATABASE ${draft}`);
    await migrate(databaseUrl(postgresUrl, draft), createLogger({ level: 'warn' }));
    await client.query(`ALTER DATABASE ${draft} RENAME TO ${name}`);
  });
  return name;
}

/**
 * Builds `dist/` when it is stale and starts one Postgres and one Temporal for the whole run, or uses those at
 * `TEST_DATABASE_URL` and `TEST_TEMPORAL_ADDRESS`. Everything is stopped and removed at the end, after a failure too.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runDir = mkdtempSync(join(tmpdir(), 'fleet-test-'));
  chmodSync(runDir, 0o755); // as root, Postgres runs as another user
  const stops: (() => Promise<void>)[] = [];
  const teardown = async () => {
    const register = join(runDir, 'processes');
    const given = process.env.TEST_DATABASE_URL;
    const clear = async () => {
      await killRegistered(register);
      if (given) await dropDatabases(given, join(runDir, 'databases'));
    };
    const ends = await Promise.allSettled([clear(), ...stops.map((stop) => stop())]);
    rmSync(runDir, { recursive: true, force: true });
    for (const end of ends) {
      if (end.status === 'fulfilled') continue;
      await noteError(project.config.root, end.reason);
      throw end.reason;
    }
  };
  try {
    project.provide('runDir', runDir);
    await buildIfStale(project.config.root);
    if (await needsServers(project)) await provideServers(project, runDir, stops);
  } catch (error) {
    await teardown();
    throw error;
  }
  return teardown;
}

async function provideServers(project: TestProject, runDir: string, stops: (() => Promise<void>)[]): Promise<void> {
  const { root } = project.config;
  const servers = (await import(join(root, 'scripts', 'test', 'servers.mjs'))) as {
    startServers(
      root: string,
      folder: string,
    ): Promise<{ postgresUrl: string; temporalAddress: string; stop(): Promise<void> }>;
  };
  const { postgresUrl, temporalAddress, stop } = await servers.startServers(root, runDir);
  stops.push(stop);
  project.provide('postgresUrl', postgresUrl);
  project.provide('templateDatabase', await createTemplate(postgresUrl, root));
  project.provide('temporalAddress', temporalAddress);
}
