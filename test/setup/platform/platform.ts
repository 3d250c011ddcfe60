import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { inject } from 'vitest';
import { cleanUp, once } from '../clean-up.js';
import { type FreshDatabase, freshDatabase } from '../database.js';
import { contradictions } from '../histories/record-checker.js';
import { until } from '../until.js';
import { type PlatformOptions, TestPlatform } from './platform-process.js';

/** gRPC's code. */
const ALREADY_EXISTS = 6;
const RETENTION = msToTs('1 day');

export interface SharedPlatform {
  platform: TestPlatform;
  database: FreshDatabase;
  /** A Temporal client in the platform's own namespace. */
  temporal: Client;
  /** Starts another process on the same database and namespace, as another machine would be; its client is the same tenant's. */
  startPeer(options?: PeerOptions): Promise<TestPlatform>;
  /** Stops the platform and its peers, rejects if its record contradicts itself, and drops what it had. */
  dispose(): Promise<void>;
}

/** `env`: beside what the first process was given. */
type PeerOptions = Pick<PlatformOptions, 'roles' | 'env' | 'start'>;

/** Registers a namespace in which nothing is, and waits until it is there. The dev server answers UNAVAILABLE while its disk is busy. */
export async function createNamespace(connection: Connection, namespace: string): Promise<void> {
  const { workflowService: service } = connection;
  const register = async () => {
    await service.registerNamespace({ namespace, workflowExecutionRetentionPeriod: RETENTION }).catch((error) => {
      if (error.code !== ALREADY_EXISTS) throw error; // by an earlier try
    });
    return true;
  };
  await until(register, { what: `the registration of ${namespace}`, timeoutMs: 60_000 });
  await until(() => service.describeNamespace({ namespace }), { what: `namespace ${namespace}` });
}

/** A Temporal namespace of a platform's own, in which nothing is, and what its processes are told of that and of their database. */
export async function newNamespace(database: FreshDatabase) {
  const connection = await Connection.connect({ address: inject('temporalAddress'), connectTimeout: '60s' });
  const namespace = `test-${randomBytes(6).toString('hex')}`;
  await createNamespace(connection, namespace);
  const settings = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: namespace,
    FLEET_SECRET_KEY: randomBytes(32).toString('base64'),
  };
  return { connection, namespace, settings, temporal: new Client({ connection, namespace }) };
}

/** A process that has not been started yet. The run ends it where nobody else has done so. */
export function newProcess({ dataDir, ...options }: Partial<PlatformOptions>): TestPlatform {
  return new TestPlatform({
    ...options,
    dataDir: dataDir ?? mkdtempSync(join(inject('runDir'), 'platform-')),
    register: join(inject('runDir'), 'processes'),
  });
}

/** What stands between a platform and its servers. */
interface PlatformDeps {
  /** What is done to the namespace before the platform sees it. */
  prepare?: (connection: Connection, namespace: string) => Promise<void>;
  /** Its database; by default a fresh one on the run's Postgres. */
  database?: FreshDatabase;
  /** The `start.js` of another build, which the first process runs. */
  start?: string;
  /** The data directory of the first process. */
  dataDir?: string;
}

/**
 * A platform of the running test's or the file's own on the run's servers, with its own database and Temporal namespace. It is disposed
 * of afterwards, except where `beforeAll` starts it: what that returns is done after its tests.
 */
export async function startPlatform(
  env: Record<string, string> = {},
  { prepare, database: given, start, dataDir }: PlatformDeps = {},
): Promise<SharedPlatform> {
  const database = given ?? (await freshDatabase());
  const { connection, namespace, settings, temporal } = await newNamespace(database);
  await prepare?.(connection, namespace);
  const processes: TestPlatform[] = [];
  const add = (options: Partial<PlatformOptions>): TestPlatform => {
    const added = newProcess({ ...options, env: { ...settings, ...env, ...options.env } });
    processes.push(added);
    return added;
  };
  const platform = add({ ...(start && { start }), ...(dataDir && { dataDir }) });
  const dispose = once(async () => {
    try {
      for (const running of processes.reverse()) await running.stop();
      const found = await contradictions(database);
      if (found.length > 0) throw new Error(found.join('\n'));
    } finally {
      await connection.close();
      await database.drop();
    }
  });
  cleanUp(dispose);
  await platform.start();
  const { client_id, client_secret } = platform.devJson();
  const startPeer = (peer: PeerOptions = {}) => add({ ...peer, credential: { client_id, client_secret } }).start();
  return { platform, database, temporal, startPeer, dispose };
}

/** A platform that brings its own Postgres and Temporal, as on a bare machine. It is stopped after the test or the file. */
export function startBarePlatform(env: Record<string, string> = {}): Promise<TestPlatform> {
  const platform = newProcess({ env });
  cleanUp(() => platform.stop());
  return platform.start();
}
