import pLimit from 'p-limit';
import type { Tx } from '../../db/pool.js';
import { Loop } from '../../runtime/loop.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageCore, MessageRef } from '../core.js';
import { failByOperator } from './next-step.js';
import type { TemporalLink } from './temporal-link.js';

/** The intervals of the sweeper, in milliseconds. */
export interface SweeperPace {
  /** Between rounds. */
  everyMs: number;
  /** A wake-up is repeated when no workflow has cleared it for this long. */
  unansweredMs: number;
  /** A workflow is looked up when it has not written its row for this long. */
  unseenMs: number;
}

const PACE: SweeperPace = { everyMs: 1_000, unansweredMs: 10_000, unseenMs: 60_000 };
const BATCH = 200;
/** Concurrent calls of Temporal; few, so that the sweeper does not slow down callers. */
const CALLS_AT_ONCE = 10;
/** After this many failures the rest of a batch waits until it is due again: each call may take its whole time limit. */
const FAILURES_MAX = 10;

type RunningRef = MessageRef & SessionRef;

/** Rows whose workflow may be missing. `mark`: the column by which they are found and claimed. */
interface WatchedRows {
  table: 'running_messages' | 'sessions';
  mark: 'wake_requested_at' | 'supervised_at';
  condition: string;
  /** Further assignments of the claim. */
  assignments?: string;
}

const WATCHED = {
  // The new lease epoch keeps the process that had the message from renewing its lease.
  unanswered_messages: {
    table: 'running_messages',
    mark: 'wake_requested_at',
    condition: 'true',
    assignments: ', lease_epoch = lease_epoch + 1',
  },
  // Workflows of implicit sessions start in the background (sessions/session-starter.ts).
  unanswered_sessions: { table: 'sessions', mark: 'wake_requested_at', condition: 'explicit' },
  unseen_messages: {
    table: 'running_messages',
    mark: 'supervised_at',
    condition: `state IN ('submitted', 'working', 'input-required')`,
  },
  unseen_sessions: { table: 'sessions', mark: 'supervised_at', condition: `status = 'active'` },
} satisfies Record<string, WatchedRows>;

type Kind = keyof typeof WATCHED;

/** Whether a row of the kind is due. The order makes it read the end of the index, however large the table is. */
function due(kind: Kind, olderThanMs: '$1' | '$2'): string {
  const { table, mark, condition } = WATCHED[kind];
  return `(SELECT true FROM ${table} WHERE ${mark} < now() - ${olderThanMs} * interval '1 ms' AND ${condition}
            ORDER BY ${mark} LIMIT 1) AS ${kind}`;
}

/** The only statement in a round of an idle platform. */
const DUE = `
  SELECT ${due('unanswered_messages', '$1')}, ${due('unanswered_sessions', '$1')},
         ${due('unseen_messages', '$2')}, ${due('unseen_sessions', '$2')}`;

/**
 * Claims rows by moving their mark, so that the sweepers of several nodes share the work. MATERIALIZED, because a plan that repeats the
 * subquery for every row would claim more than a batch.
 */
function claim({ table, mark, condition, assignments = '' }: WatchedRows): string {
  const key = table === 'running_messages' ? 'message_id' : 'session_id';
  const columns = table === 'running_messages' ? 'tenant_id, message_id, session_id' : 'tenant_id, session_id';
  return `
    WITH picked AS MATERIALIZED (
      SELECT tenant_id, ${key} FROM ${table} WHERE ${mark} < now() - $1 * interval '1 ms' AND ${condition}
       ORDER BY ${mark} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
    UPDATE ${table} t SET ${mark} = now()${assignments} FROM picked WHERE t.tenant_id = picked.tenant_id AND t.${key} = picked.${key}
    RETURNING ${columns.replaceAll(/(\w+)/g, 't.$1')}`;
}

/**
 * Brings the workflows in line with the record: starts those that a crash left unstarted, repeats wake-ups, recreates lost workflows, and
 * fails messages whose workflow an operator terminated (docs/durability.md).
 */
export class Sweeper {
  readonly #core: MessageCore;
  readonly #temporal: TemporalLink;
  readonly #pace: SweeperPace;
  readonly #loop: Loop;

  constructor(core: MessageCore, temporal: TemporalLink, pace: Partial<SweeperPace> = {}) {
    this.#core = core;
    this.#temporal = temporal;
    this.#pace = { ...PACE, ...pace };
    // The first round starts at once, so that messages continue right after a crash.
    const loop = { name: 'sweeper', intervalMs: this.#pace.everyMs, immediate: true, log: core.log };
    this.#loop = new Loop({ ...loop, work: () => this.sweep() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when the running round has ended. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** One round. Rejects when the database or Temporal is away; the rows that it did not reach are due again later. */
  async sweep(): Promise<void> {
    const { unansweredMs, unseenMs } = this.#pace;
    const due = await this.#due();
    if (due?.unanswered_messages) await this.#repeatWakeUps();
    if (due?.unanswered_sessions)
      await this.#claimAndCall<SessionRef>('unanswered_sessions', unansweredMs, (ref) =>
        this.#temporal.wakeSession(ref),
      );
    if (due?.unseen_messages)
      await this.#claimAndCall<RunningRef>('unseen_messages', unseenMs, (ref) => this.#restoreMessage(ref));
    if (due?.unseen_sessions)
      await this.#claimAndCall<SessionRef>('unseen_sessions', unseenMs, (ref) => this.#restoreSession(ref));
  }

  async #due(): Promise<Record<Kind, boolean | null> | undefined> {
    const { unansweredMs, unseenMs } = this.#pace;
    const [due] = await this.#core.db.system((tx) =>
      tx.query<Record<Kind, boolean | null>>(DUE, [unansweredMs, unseenMs]),
    );
    return due;
  }

  /** @returns the number of claimed rows */
  async #claimAndCall<Row extends SessionRef>(
    kind: Kind,
    olderThanMs: number,
    call: (ref: Row) => Promise<void>,
  ): Promise<number> {
    const claimed = await this.#core.db.system((tx: Tx) => tx.query<Row>(claim(WATCHED[kind]), [olderThanMs]));
    const limit = pLimit({ concurrency: CALLS_AT_ONCE, rejectOnClear: true });
    let failures = 0;
    const calls = claimed.map((ref) =>
      limit(call, ref).catch((error: unknown) => {
        failures += 1;
        if (failures === FAILURES_MAX) limit.clearQueue();
        throw error;
      }),
    );
    const failed = (await Promise.allSettled(calls)).find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
    return claimed.length;
  }

  async #repeatWakeUps(): Promise<void> {
    const messages = await this.#claimAndCall<RunningRef>('unanswered_messages', this.#pace.unansweredMs, (ref) =>
      this.#temporal.wakeMessage(ref),
    );
    if (messages > 0) this.#core.log.info({ messages }, 'wake-ups repeated');
  }

  async #restoreSession(ref: SessionRef): Promise<void> {
    const fate = await this.#temporal.fateOfSession(ref);
    if (fate !== 'running') await this.#temporal.wakeSession(ref);
  }

  async #restoreMessage(ref: RunningRef): Promise<void> {
    const fate = await this.#temporal.fateOfMessage(ref);
    if (fate === 'running') return;
    if (fate === 'ended_by_operator') {
      this.#core.log.warn(
        { message_id: ref.message_id },
        'the workflow of a message was ended in Temporal; the message fails',
      );
      await failByOperator(this.#core, ref, {
        code: 'INTERNAL',
        message: 'An operator ended the workflow of this message.',
      });
      return;
    }
    this.#core.log.info({ message_id: ref.message_id, fate }, 'recreating a lost workflow');
    await this.#temporal.wakeMessage(ref);
  }
}
