import { setImmediate as nextTurn } from 'node:timers/promises';
import type pg from 'pg';
import { isUndone, tooManyCalls } from '../errors.js';
import { type BatchCall, type BatchExecution, LockWaits, lockWaitSlots } from './lock-waits.js';
import { callOnce, execute, retried, type Statement, type TenantCall } from './statement.js';

/** Calls, and characters of JSON, in one statement. */
const CALLS_MAX = 32;
const CHARACTERS_MAX = 1024 * 1024;
/** If a tenant has more waiting calls than this, half of them go: the process works on their results while the database works on the other half. */
const WHOLE_MAX = 8;
/** The next statement starts at the latest this long after the one before, whose connection may be dead. */
const WAIT_MS = 1_000;
/** Calls of one tenant that wait for a statement, and how long, in milliseconds; 429 beyond. Only a database that stands still takes so long. */
const WAITING_MAX = 1_000;
const WAITING_MAX_MS = 10_000;
/** Between two looks for calls that have waited for too long, in milliseconds. */
const LOOK_MS = 1_000;

/** A call that waits for a statement, since that time on `performance.now()`. */
type WaitingCall<Row> = BatchCall<Row> & { sinceMs: number };

/** The calls of one tenant that wait, while it has any here. */
interface Tenant<Row> {
  id: string;
  waiting: WaitingCall<Row>[];
  /** A statement with calls of it is under way, or about to start. */
  busy: boolean;
  /** Whether its last statement had several calls. */
  sharing: boolean;
}

/** The statements of a `Batcher` so far, for metrics. */
export interface BatchCounts {
  /** How many statements had 0, 1, 2, … calls; none has 0. */
  statementsBySize: readonly number[];
  /** Calls that wait for a statement now. */
  waiting: number;
  /** Calls that were repeated: another transaction held their lock, or their statement was undone. */
  repeated: number;
}

export interface BatcherOptions<Row> extends BatchExecution<Row> {
  /** Makes a call that waits for a lock, or whose statement was undone (lock null). */
  repeat(call: BatchCall<Row>, lock: string | null): void;
  /** Statements that run at once. */
  lanes: number;
}

/**
 * Group commit: calls of one kind that arrive while a statement is under way share the next one, with one round trip, one transaction and
 * one commit. A call that arrives alone goes at once. A tenant has one statement under way, and tenants do not wait for each other's while
 * fewer are at work than there are lanes; beyond, they share statements, in turn. A call that would wait for a lock is repeated with
 * others that wait for the same lock (lock-waits.ts), and the rest of its statement is done. If a call fails the statement, all of them are undone and each is repeated on its own. If the
 * outcome of a statement is unknown, its calls fail; those that wait go in their turns.
 */
export class Batcher<Row> {
  readonly #options: BatcherOptions<Row>;
  readonly #tenants = new Map<string, Tenant<Row>>();
  /** Tenants that have calls and no statement, in the order of their turns. */
  readonly #ready = new Set<Tenant<Row>>();
  #underWay = 0;
  readonly #statementsBySize = new Array<number>(CALLS_MAX + 1).fill(0);
  #repeated = 0;
  #looking: NodeJS.Timeout | undefined;

  constructor(options: BatcherOptions<Row>) {
    this.#options = options;
  }

  counts(): BatchCounts {
    let waiting = 0;
    for (const tenant of this.#tenants.values()) waiting += tenant.waiting.length;
    return { statementsBySize: this.#statementsBySize, waiting, repeated: this.#repeated };
  }

  /**
   * @param json one call, as a JSON object
   * @throws PlatformError RATE_LIMITED when too many calls of the tenant wait, or it has waited for too long
   */
  call(tenantId: string, json: string): Promise<Row> {
    const tenant = this.#tenantOf(tenantId);
    if (tenant.waiting.length >= WAITING_MAX) return Promise.reject(tooManyCalls());
    return new Promise((resolve, reject) => {
      tenant.waiting.push({ tenantId, json, resolve, reject, sinceMs: performance.now() });
      this.#looking ??= setTimeout(() => this.#refuseOld(), LOOK_MS).unref();
      if (tenant.busy) return;
      // While calls share statements, requests that have arrived by now join the next one.
      if (tenant.sharing) void this.#readyAfterTurn(tenant);
      else this.#makeReady(tenant);
    });
  }

  /** Refuses the calls that have waited for too long. */
  #refuseOld(): void {
    this.#looking = undefined;
    const oldMs = performance.now() - WAITING_MAX_MS;
    let waiting = 0;
    for (const tenant of this.#tenants.values()) {
      const old = tenant.waiting.findIndex(({ sinceMs }) => sinceMs > oldMs);
      const refused = tenant.waiting.splice(0, old < 0 ? tenant.waiting.length : old);
      for (const call of refused) call.reject(tooManyCalls());
      waiting += tenant.waiting.length;
      if (tenant.waiting.length === 0 && this.#ready.delete(tenant)) this.#tenants.delete(tenant.id);
    }
    if (waiting > 0) this.#looking = setTimeout(() => this.#refuseOld(), LOOK_MS).unref();
  }

  #tenantOf(tenantId: string): Tenant<Row> {
    const known = this.#tenants.get(tenantId);
    if (known) return known;
    const tenant = { id: tenantId, waiting: [], busy: false, sharing: false };
    this.#tenants.set(tenantId, tenant);
    return tenant;
  }

  /** Makes the tenant ready in the next turn of the event loop, so that requests of this moment join the statement. */
  async #readyAfterTurn(tenant: Tenant<Row>): Promise<void> {
    tenant.busy = true;
    await nextTurn();
    this.#makeReady(tenant);
  }

  #makeReady(tenant: Tenant<Row>): void {
    tenant.busy = tenant.waiting.length > 0;
    if (tenant.busy) this.#ready.add(tenant);
    this.#start();
  }

  #start(): void {
    const { lanes } = this.#options;
    while (this.#ready.size > 0 && this.#underWay < lanes) {
      // The last free lane takes the calls of all ready tenants, since no lane is left for them.
      const isLast = this.#underWay === lanes - 1;
      void this.#runShared(this.#take(isLast ? this.#ready.size : 1));
    }
  }

  /** Takes calls of the first `count` ready tenants, of each the same share. */
  #take(count: number): { tenants: Tenant<Row>[]; calls: BatchCall<Row>[] } {
    const tenants: Tenant<Row>[] = [];
    const calls: BatchCall<Row>[] = [];
    const share = Math.ceil(CALLS_MAX / count);
    let characters = 0;
    for (const tenant of this.#ready) {
      const waiting = tenant.waiting.length;
      const limit = Math.min(share, CALLS_MAX - calls.length, waiting > WHOLE_MAX ? Math.ceil(waiting / 2) : waiting);
      let taken = 0;
      for (const { json } of tenant.waiting) {
        characters += json.length;
        if (taken === limit || (calls.length + taken > 0 && characters > CHARACTERS_MAX)) break;
        taken += 1;
      }
      if (taken === 0) break;
      calls.push(...tenant.waiting.splice(0, taken));
      tenants.push(tenant);
      if (tenants.length === count) break;
    }
    for (const tenant of tenants) this.#ready.delete(tenant);
    return { tenants, calls };
  }

  async #runShared({ tenants, calls }: { tenants: Tenant<Row>[]; calls: BatchCall<Row>[] }): Promise<void> {
    this.#underWay += 1;
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      this.#underWay -= 1;
      for (const tenant of tenants) this.#goOn(tenant, calls.length > 1);
      this.#start();
    };
    const overdue = setTimeout(end, WAIT_MS);
    await this.#runCalls(calls);
    clearTimeout(overdue);
    end();
  }

  #goOn(tenant: Tenant<Row>, sharing: boolean): void {
    tenant.sharing = sharing;
    tenant.busy = false;
    if (tenant.waiting.length > 0) void this.#readyAfterTurn(tenant);
    else if (!sharing) this.#tenants.delete(tenant.id);
  }

  /** Never rejects. */
  async #runCalls(calls: BatchCall<Row>[]): Promise<void> {
    const { run, isUndone, awaits, repeat } = this.#options;
    this.#statementsBySize[calls.length] = (this.#statementsBySize[calls.length] ?? 0) + 1;
    try {
      const rows = await run(`[${calls.map(({ json }) => json).join(',')}]`);
      calls.forEach((call, index) => {
        const row = rows[index] as Row;
        const lock = awaits(row);
        if (lock === null) {
          call.resolve(row);
          return;
        }
        this.#repeated += 1;
        repeat(call, lock);
      });
    } catch (error) {
      if (isUndone(error)) {
        this.#repeated += calls.length;
        for (const call of calls) repeat(call, null);
        return;
      }
      for (const call of calls) call.reject(error);
    }
  }
}

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
