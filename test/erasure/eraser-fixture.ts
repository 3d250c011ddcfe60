import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { expect, inject } from 'vitest';
import { endsOfWork } from '../../erasure/end-work.js';
import { eraseNext } from '../../erasure/eraser.js';
import type { EraserDeps } from '../../erasure/eraser-deps.js';
import { type ErasureReport, findErasure, requestErasure, type Selection } from '../../erasure/erasures.js';
import { TemporalLink } from '../../messages/supervise/temporal-link.js';
import { createWorkflowErasure } from '../../messages/supervise/workflow-erasure.js';
import { createLogger, type Logger } from '../../runtime/logger.js';
import { createCatchUp } from '../../usage/roll-up.js';
import type { ServedApi } from '../api/served-api.js';
import { cleanUp } from '../setup/clean-up.js';
import type { FreshDatabase } from '../setup/database.js';

/**
 * What a process has until it dies: with a transaction, with the workflows or with the keys in Redis that it removes, before or after that.
 * @param steps of these, that of its death included
 * @param isDone whether the last step is done; of workflows that are not, the first one is gone
 */
export function untilDeath(deps: EraserDeps, steps: number, isDone: boolean): EraserDeps {
  const { db, workflows, bus } = deps;
  let left = steps;
  const die = () => Promise.reject(new Error('killed'));
  const step = async <Result>(work: () => Promise<Result>, begin?: () => Promise<unknown>): Promise<Result> => {
    left -= 1;
    if (left === 0 && !isDone) await begin?.();
    if (left < 0 || (left === 0 && !isDone)) return die();
    const result = await work();
    return left === 0 ? die() : result;
  };
  const erase = (ids: readonly string[]) =>
    step(
      () => workflows.erase(ids),
      () => workflows.erase(ids.slice(0, 1)),
    );
  return {
    ...deps,
    db: { ...db, system: (work) => step(() => db.system(work)) },
    workflows: { ...workflows, erase },
    bus: { keysOf: (...of) => bus.keysOf(...of), forget: (...what) => step(() => bus.forget(...what)) },
  };
}

/** The tables that have a text, without partitions. */
export async function tablesWith({ query }: Pick<FreshDatabase, 'query'>, text: string): Promise<string[]> {
  const tables = await query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await query(`SELECT 1 FROM ${name} t WHERE t::text LIKE '%' || $1 || '%' LIMIT 1`, [text]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

/** Runs commands of an operator beside a platform, with its settings. Each gives the object that it prints. */
export function operatorWith(settings: Record<string, string>) {
  const cli = new URL('../../dist/cli/fleet.js', import.meta.url).pathname;
  const env = { PATH: process.env.PATH, ...settings };
  return async <Result = ErasureReport>(...args: string[]): Promise<Result> => {
    const { stdout } = await promisify(execFile)(process.execPath, [cli, ...args, '--json'], { env });
    return JSON.parse(stdout) as Result;
  };
}

/** The run's Temporal server: what the platform asks it, and a client of the test's own. */
export async function connectTemporal(log: Logger): Promise<{ temporal: TemporalLink; client: Client }> {
  const address = inject('temporalAddress');
  const temporal = new TemporalLink({ options: { address }, namespace: 'default', dataConverter: {} }, log);
  await temporal.prepare();
  cleanUp(() => temporal.close());
  const connection = await Connection.connect({ address, connectTimeout: '60s' });
  cleanUp(() => connection.close());
  return { temporal, client: new Client({ connection }) };
}

/** Erasures of a served API, which has no worker: the test does their turns. */
export async function erasing(api: ServedApi) {
  const log = createLogger({ level: 'silent' });
  const { temporal, client } = await connectTemporal(log);
  const { db, core, database, tenantId } = api;
  const deps: EraserDeps = {
    db,
    log,
    bus: core.bus,
    workflows: createWorkflowErasure(temporal),
    catchUpUsage: createCatchUp(db),
    leaseSeconds: 0,
    ...endsOfWork(core),
  };
  const report = async (id: string): Promise<ErasureReport> => {
    const found = await findErasure(db, id);
    if (!found) throw new Error(`there is no erasure ${id}`);
    return found;
  };
  /** One turn, whatever it waits for. */
  const turn = async (over: Partial<EraserDeps> = {}) => {
    await database.query('UPDATE erasures SET next_at = now() WHERE finished_at IS NULL');
    await eraseNext({ ...deps, ...over });
  };
  /** What the alert relay does, where no rules are. */
  const alertsRead = async () => {
    await database.query('SELECT position_events(10000)');
    await database.query("UPDATE event_cursors SET position = event_head() WHERE consumer = 'alerts'");
  };
  const order = (kind: 'messages' | 'sessions', selection: Selection) =>
    db.system((tx) => requestErasure(tx, { tenant_id: tenantId, kind, selection }, 'test'));
  return {
    client,
    deps,
    order,
    turn,
    report,
    alertsRead,
    /** Turns until the erasure is finished. @param between what happens meanwhile elsewhere */
    finish: async (
      id: string,
      between: () => Promise<unknown> = async () => undefined,
      over: Partial<EraserDeps> = {},
    ) => {
      for (let turns = 0; (await report(id)).finished_at === null; turns += 1) {
        expect(turns).toBeLessThan(100);
        await turn(over);
        await between();
        await alertsRead();
      }
      return (await report(id)).removed;
    },
  };
}
