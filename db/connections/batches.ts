import type pg from 'pg';
import { isUndone } from '../errors.js';
import { type BatchCounts, Batcher } from './batcher.js';
import { LockWaits, lockWaitSlots } from './lock-waits.js';
import { callOnce, execute, retried, type Statement, type TenantCall } from './statement.js';

/** Statements in batches. */
interface Batches {
  call<Row>(statement: Statement<Row>, call: TenantCall): Promise<Row>;
  /** By the name of the statement; none before its first call. */
  counts(): Record<string, BatchCounts>;
}

/** Executes statements in batches on a pool, with one batcher for each statement. */
export function createBatches(pool: pg.Pool, shares: { lanes: number; repeats: number }): Batches {
  const batchers = new Map<string, Batcher<unknown>>();
  const slots = lockWaitSlots(shares.repeats);
  const batcherOf = (statement: Statement<unknown>) => {
    const run = (calls: string, waitForLocks = false) =>
      retried(() => callOnce(pool, (client) => execute(client, statement, [calls, String(waitForLocks)])));
    const awaits = (row: unknown) => statement.awaits?.(row) ?? null;
    const lockWaits = new LockWaits<unknown>({ run: (calls) => run(calls, true), isUndone, awaits, slots });
    const repeat = lockWaits.repeat.bind(lockWaits);
    const made = new Batcher<unknown>({ run, isUndone, awaits, repeat, lanes: shares.lanes });
    batchers.set(statement.name, made);
    return made;
  };
  return {
    call: <Row>(statement: Statement<Row>, call: TenantCall) =>
      (batchers.get(statement.name) ?? batcherOf(statement as Statement<unknown>)).call(
        call.tenant_id,
        JSON.stringify(call),
      ) as Promise<Row>,
    counts: () => Object.fromEntries([...batchers].map(([name, batcher]) => [name, batcher.counts()])),
  };
}
