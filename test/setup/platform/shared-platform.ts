import type { Client } from '@temporalio/client';
import pg from 'pg';
import { ANY_AGENT_TYPE } from '../../../contracts/primitives.js';
import { FUNCTION_SCHEMA } from '../../../db/migrate.js';
import { cleanUp, once } from '../clean-up.js';
import { createDatabase, type FreshDatabase, queriesOf } from '../database.js';
import { contradictions } from '../histories/record-checker.js';
import { newTenant } from '../tenant.js';
import { ApiClient } from './api-client.js';
import { newNamespace, newProcess } from './platform.js';
import { type DevJson, type TestPlatform, withClocks } from './platform-process.js';

/** What a platform looks for in turns, it looks for often. */
const OFTEN = withClocks({ eraseMs: 200 });

/** What a tenant of a shared platform sees of it. */
export interface TenantPlatform {
  /** `client` speaks for the tenant, and `devJson` has its credentials. The log is that of all tenants. */
  platform: Pick<TestPlatform, 'client' | 'devJson' | 'baseUrl' | 'log'>;
  /** `query` sees the rows of the tenant and none of others, by the row-level security of `fleet_app`. */
  database: Omit<FreshDatabase, 'drop'>;
  /** As the owner, who sees the rows of all tenants, and tables that none may read. */
  everyTenant: Pick<FreshDatabase, 'query'>;
  /** A Temporal client in the namespace that all tenants of the platform have; ids of workflows begin with kind and tenant. */
  temporal: Client;
  tenant_id: string;
  /** For the commands of an operator. */
  operatorEnv: { DATABASE_URL: string; FLEET_SECRET_KEY: string };
  /** Rejects if the tenant's record contradicts itself or the platform has ended. Done after the test or the file, except in `beforeAll`. */
  dispose(): Promise<void>;
}

/** A platform that lives as long as its worker. */
interface RunningPlatform {
  process: TestPlatform;
  /** As the owner, who sees every tenant. */
  database: FreshDatabase;
  temporal: Client;
  secretKey: string;
}

/** The module lives as long as its worker, for vitest runs without isolation. */
let running: Promise<RunningPlatform> | undefined;

async function startRunning(): Promise<RunningPlatform> {
  const database = await createDatabase();
  const { settings, temporal } = await newNamespace(database);
  const process = newProcess({ env: { ...settings, OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8', ...OFTEN } });
  await process.start();
  return { process, database, temporal, secretKey: settings.FLEET_SECRET_KEY };
}

/** The worker's platform. One that did not start, or has ended, is started anew for the next file. */
async function runningPlatform(): Promise<RunningPlatform> {
  const known = await running?.catch(() => undefined);
  if (known && known.process.ended === undefined) return known;
  running = startRunning();
  return running;
}

/** Puts a tenant on the record with the credentials that `npm start` makes for its first one. */
async function tenantOn({ process, database, secretKey }: RunningPlatform): Promise<DevJson> {
  const { tenant_id, issue } = await newTenant(database.db(), secretKey);
  const full = await issue();
  const agents = await issue({ name: 'agents', scopes: ['read'], agent_types: [ANY_AGENT_TYPE] });
  const { client_id: agent_client_id, client_secret: agent_client_secret } = agents;
  return { ...process.devJson(), tenant_id, ...full, agent_client_id, agent_client_secret };
}

/** Connections that see this tenant only. */
function tenantPool(url: string, tenantId: string): pg.Pool {
  const options = `-c search_path=${FUNCTION_SCHEMA},public -c role=fleet_app -c app.tenant_id=${tenantId}`;
  const pool = new pg.Pool({ connectionString: url, max: 2, options });
  pool.on('error', () => undefined); // the run's Postgres may be stopped before the pool
  return pool;
}

/**
 * A new tenant, with a credential of its own, on a platform process that all files of this vitest worker share. The process has a database
 * and a Temporal namespace of its own, is started when a file first asks for it, and ends with the run. So a file may not stop, kill or
 * restart it, and what counts for the whole platform (metrics, the log, nodes, workflows, wrong secrets of an address) is not the file's
 * alone; instance ids, agent types, sessions, messages, rules and policies are. A file with other settings calls `startPlatform`.
 *
 *     const { platform, database } = await sharedPlatform(); // at the top of a file or in a test
 *     beforeAll(async () => {
 *       shared = await sharedPlatform();
 *       return shared.dispose;
 *     });
 */
export async function sharedPlatform(): Promise<TenantPlatform> {
  const shared = await runningPlatform();
  const devJson = await tenantOn(shared);
  const { tenant_id } = devJson;
  const pool = tenantPool(shared.database.url, tenant_id);
  const database: TenantPlatform['database'] = {
    url: shared.database.url,
    ...queriesOf(pool),
    db: () => shared.database.db(),
  };
  const dispose = once(async () => {
    try {
      const found = await contradictions(database);
      const { ended } = shared.process;
      if (ended) found.push(`the shared platform ended: ${ended}\n${shared.process.log().slice(-4_000)}`);
      await database.query('UPDATE credentials SET revoked_at = now()'); // closes the sockets that the file left open
      if (found.length > 0) throw new Error(found.join('\n'));
    } finally {
      await pool.end();
    }
  });
  cleanUp(dispose);
  const reachable = { devJson: () => devJson };
  const platform = {
    ...reachable,
    client: new ApiClient(reachable),
    baseUrl: devJson.base_url,
    log: () => shared.process.log(),
  };
  const operatorEnv = { DATABASE_URL: database.url, FLEET_SECRET_KEY: shared.secretKey };
  const { temporal, database: everyTenant } = shared;
  return { platform, database, everyTenant, temporal, tenant_id, operatorEnv, dispose };
}
