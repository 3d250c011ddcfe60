import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { isLockTimeout, lockHeld, tooManyCalls } from '../errors.js';

/** Calls of one statement. */
const CALLS_MAX = 32;
/** Repeats of one call; 429 beyond. */
const REPEATS_MAX = 10;
/** How long a call waits for locks, in milliseconds; 429 beyond. */
export const WAIT_MAX_MS = 10_000;
/** Calls of one tenant that wait; 429 beyond. */
const WAITING_MAX = 1_000;

/** One call as a JSON object. */
export interface BatchCall<Row> {
  tenantId: string;
  json: string;
  resolve(row: Row): void;
  reject(error: unknown): void;
}

/** A call that is repeated. */
interface Repeated<Row> {
  call: BatchCall<Row>;
  repeats: number;
  /** On `performance.now()`. */
  untilMs: number;
}

/** How a statement for batches is executed. */
export interface BatchExecution<Row> {
  /** Executes a JSON array of calls, all or none, and returns a row for each in its order. */
  run(calls: string): Promise<Row[]>;
  /** Whether an error guarantees that nothing was written. */
  isUndone(error: unknown): boolean;
  /** Null if the call was made; else the lock for which it was not, because another transaction holds it. */
  awaits(row: Row): string | null;
}

/** `run` lets the first call wait for locks, a few seconds. */
export interface LockWaitOptions<Row> extends BatchExecution<Row> {
  /** From `lockWaitSlots`. */
  slots: FairSemaphore;
}

/**
 * The connections that may wait for locks.
 * @param limit of them, half for one tenant at most
 */
export function lockWaitSlots(limit: number): FairSemaphore {
  const perKey = Math.ceil(limit / 2);
  return new FairSemaphore({ limit, perKey, waitingMax: WAITING_MAX, waitMaxMs: WAIT_MAX_MS, refusal: lockHeld });
}

/**
 * Makes calls that have to wait for a lock, and those whose shared statement was undone. Calls for the same lock share a statement, whose
 * first call waits; others have statements of their own. It gives up after `REPEATS_MAX` repeats or `WAIT_MAX_MS`.
 */
export class LockWaits<Row> {
  readonly #options: LockWaitOptions<Row>;
  /** By tenant and lock. */
  readonly #groups = new Map<string, Repeated<Row>[]>();
  readonly #waitingOf = new Map<string, number>();
  #alone = 0;

  constructor(options: LockWaitOptions<Row>) {
    this.#options = options;
  }

  /** @param lock which the call waits for; null: its statement failed, and it is made alone. The call is rejected with RATE_LIMITED at a bound */
  repeat(call: BatchCall<Row>, lock: string | null): void {
    const { tenantId } = call;
    const waiting = this.#waitingOf.get(tenantId) ?? 0;
    if (waiting >= WAITING_MAX) {
      call.reject(tooManyCalls());
      return;
    }
    this.#waitingOf.set(tenantId, waiting + 1);
    const counted = {
      ...call,
      resolve: (row: Row) => {
        this.#settled(tenantId);
        call.resolve(row);
      },
      reject: (error: unknown) => {
        this.#settled(tenantId);
        call.reject(error);
      },
    };
    this.#add({ call: counted, repeats: 0, untilMs: performance.now() + WAIT_MAX_MS }, lock);
  }

  #settled(tenantId: string): void {
    const left = (this.#waitingOf.get(tenantId) ?? 0) - 1;
    if (left > 0) this.#waitingOf.set(tenantId, left);
    else this.#waitingOf.delete(tenantId);
  }

  #add(repeated: Repeated<Row>, lock: string | null): void {
    if (repeated.repeats >= REPEATS_MAX || performance.now() >= repeated.untilMs) {
      repeated.call.reject(lockHeld());
      return;
    }
    repeated.repeats += 1;
    const { tenantId } = repeated.call;
    this.#alone += 1;
    const key = lock === null ? `${tenantId} alone ${this.#alone}` : `${tenantId} ${lock}`;
    const group = this.#groups.get(key);
    if (group) group.push(repeated);
    else void this.#runGroup(key, tenantId, lock, [repeated]);
  }

  async #runGroup(key: string, tenantId: string, lock: string | null, group: Repeated<Row>[]): Promise<void> {
    this.#groups.set(key, group);
    while (group.length > 0) {
      try {
        await this.#options.slots.run(tenantId, () => this.#runCalls(group.splice(0, CALLS_MAX), lock));
      } catch (refusal) {
        for (const { call } of group.splice(0)) call.reject(refusal);
      }
    }
    this.#groups.delete(key);
  }

  /** Never rejects. */
  async #runCalls(repeated: Repeated<Row>[], lock: string | null): Promise<void> {
    const { run, isUndone, awaits } = this.#options;
    try {
      const rows = await run(`[${repeated.map(({ call }) => call.json).join(',')}]`);
      repeated.forEach((one, index) => {
        const row = rows[index] as Row;
        const next = awaits(row);
        if (next === null) one.call.resolve(row);
        else this.#add(one, next);
      });
    } catch (error) {
      if (isLockTimeout(error)) for (const one of repeated) this.#add(one, lock);
      else if (repeated.length > 1 && isUndone(error)) for (const one of repeated) this.#add(one, null);
      else for (const { call } of repeated) call.reject(error);
    }
  }
}
