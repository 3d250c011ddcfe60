import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { FUNCTION_SCHEMA, migrate } from '../../db/migrate.js';
import { startPostgres } from '../../embedded/postgres.js';
import { startTemporal } from '../../embedded/temporal.js';
import { createLogger } from '../../runtime/logger.js';
import { killRegistered } from './platform/process-tree.js';

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

/** A file that asks for the servers of the run, or for a build. */
const USES_SERVERS = /inject\('(postgresUrl|temporalAddress)'\)/;
const USES_BUILD = /dist\//;
const LOCAL_IMPORT = /from '(\.[^']+)\.js'/g;
const TESTS = join(import.meta.dirname, '..', sep);

/** The texts of these files and of those of this folder that they import, directly or not. */
function textsOf(files: string[]): string[] {
  const texts = new Map<string, string>();
  const read = (file: string): void => {
    if (texts.has(file)) return;
    const text = readFileSync(file, 'utf8');
    texts.set(file, text);
    for (const [, path = ''] of text.matchAll(LOCAL_IMPORT)) {
      const imported = `${resolve(dirname(file), path)}.ts`;
      if (imported.startsWith(TESTS) && existsSync(imported)) read(imported);
    }
  };
  for (const file of files) read(file);
  return [...texts.values()];
}

/** Whether the run needs what fits: one of plain tests builds and starts nothing. */
async function askRun(project: TestProject): Promise<(pattern: RegExp) => boolean> {
  const { filenamePattern } = project.vitest as unknown as { filenamePattern?: string[] }; // what was asked for by name
  const { testFiles } = await project.globTestFiles(filenamePattern);
  const texts = textsOf(testFiles);
  return (pattern) => texts.some((text) => pattern.test(text));
}

async function buildIfStale(root: string): Promise<void> {
  const sources = (await import(join(root, 'scripts', 'sources.mjs'))) as { isBuilt(root: string): boolean };
  if (!sources.isBuilt(root)) await run(process.execPath, [join(root, 'scripts', 'build.mjs')]);
}

/** Has the closing lines of `npm test` name an error, which vitest only prints at the end of a run. */
async function noteError(root: string, error: unknown): Promise<void> {
  const report = (await import(join(root, 'scripts', 'test-report.mjs'))) as {
    noteOutsideError(error: unknown, type: string): void;
  };
  report.noteOutsideError(error, 'global teardown');
}

async function asOwner(url: string, statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Drops what files or workers of this run left on a server that outlives it. */
function dropDatabases(url: string, list: string): Promise<void> {
  const names = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n') : [];
  return asOwner(
    url,
    names.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  );
}

/** The server of a run never has to survive a crash; tests that kill a Postgres bring their own. */
function commitWithoutDisk(url: string): Promise<void> {
  const settings = ['synchronous_commit', 'fsync', 'full_page_writes'];
  return asOwner(url, [...settings.map((name) => `ALTER SYSTEM SET ${name} = off`), 'SELECT pg_reload_conf()']);
}

/** What a server still would write before it ends, which takes a minute after a whole run, is removed anyway. */
async function stopAtOnce(server: { pid: number; stop(): Promise<void> }, signal: NodeJS.Signals): Promise<void> {
  const stopped = server.stop();
  process.kill(server.pid, signal);
  await stopped;
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
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [name]); // another run may make the same
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount) return name;
    await client.query(`CREATE DATABASE ${draft}`);
    const url = new URL(postgresUrl);
    url.pathname = draft;
    await migrate(url.href, createLogger({ level: 'warn' }));
    await client.query(`ALTER DATABASE ${draft} RENAME TO ${name}`);
    return name;
  } finally {
    await client.end();
  }
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
    const anyFile = await askRun(project);
    if (anyFile(USES_SERVERS) || anyFile(USES_BUILD)) await buildIfStale(project.config.root);
    if (anyFile(USES_SERVERS)) await startServers(project, runDir, stops);
  } catch (error) {
    await teardown();
    throw error;
  }
  return teardown;
}

async function startServers(project: TestProject, runDir: string, stops: (() => Promise<void>)[]): Promise<void> {
  const log = createLogger({ level: 'warn' });
  const onLine = (line: string) => process.stderr.write(`[test] ${line}\n`);
  const own = (name: string) => {
    mkdirSync(join(runDir, name), { mode: 0o755 });
    return join(runDir, name);
  };
  const postgres = async () => {
    if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
    const server = await startPostgres({ dataDir: own('postgres-data'), log, onLine });
    stops.push(() => stopAtOnce(server, 'SIGQUIT'));
    await commitWithoutDisk(server.url);
    return server.url;
  };
  const temporal = async () => {
    if (process.env.TEST_TEMPORAL_ADDRESS) return process.env.TEST_TEMPORAL_ADDRESS;
    const server = await startTemporal({ dataDir: own('temporal-data'), log, onLine });
    stops.push(() => stopAtOnce(server, 'SIGKILL'));
    return server.address;
  };
  const [postgresUrl, temporalAddress] = await Promise.all([postgres(), temporal()]);
  project.provide('postgresUrl', postgresUrl);
  project.provide('templateDatabase', await createTemplate(postgresUrl, project.config.root));
  project.provide('temporalAddress', temporalAddress);
}
