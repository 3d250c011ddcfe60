import { Client, Connection } from '@temporalio/client';
import { expect, inject } from 'vitest';
import type { Db } from '../../db/pool.js';
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

/** A database that a process has until it dies: with a transaction, before or after its commit. */
export function untilDeath(db: Db, transactions: number, committed: boolean): Db {
  let left = transactions;
  const die = () => Promise.reject(new Error('killed'));
  return {
    ...db,
    system: async (work) => {
      left -= 1;
      if (left < 0 || (left === 0 && !committed)) return die();
      const result = await db.system(work);
      return left === 0 ? die() : result;
    },
  };
}

/** The run's Temporal server: what the platform asks it, and a client of the test's own. */
export async function connectTemporal(log: Logger): Promise<{ temporal: TemporalLink; client: Client }> {
  const address = inject('temporalAddress');
  const temporal = new TemporalLink({ options: { address }, namespace: 'default' }, log);
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
