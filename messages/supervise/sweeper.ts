import pLimit from 'p-limit';
import type { Tx } from '../../db/pool.js';
import { Loop } from '../../runtime/loop.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageCore, MessageRef } from '../core.js';
import { failByOperator } from './next-step.js';
import type { TemporalLink } from './temporal-link.js';

/** How the sweeper paces itself, in milliseconds. */
export interface SweeperPace {
  /** Between rounds. */
  everyMs: number;
  /** A wake-up that a workflow has not answered for this long is repeated. */
  unansweredMs: number;
  /** A workflow that has not touched its row for this long is asked after. */
  unseenMs: number;
}

const PACE: SweeperPace = { everyMs: 1_000, unansweredMs: 10_000, unseenMs: 60_000 };
const BATCH = 200;
/** So few that the sweeper never crowds out the callers. */
const CALLS_AT_ONCE = 10;
/** After so many failures in a batch the rest of it is left until it is due again: each call may take its whole time limit. */
const FAILURES_MAX = 10;

type Named = MessageRef & SessionRef;

/** A kind of row that may need its workflow, and the mark by which it is found and claimed. */
interface Watched {
  table: 'running_messages' | 'sessions';
  mark: 'wake_requested_at' | 'supervised_at';
  only: string;
  /** What is written with the mark. */
  also?: string;
}

const WATCHED = {
  // Whoever takes a message over fences its owner (architecture.md, decision 11).
  unanswered_messages: {
    table: 'running_messages',
    mark: 'wake_requested_at',
    only: 'true',
    also: ', lease_epoch = lease_epoch + 1',
  },
  // Workflows of implicit sessions start in the background (sessions/session-starter.ts).
  unanswered_sessions: { table: 'sessions', mark: 'wake_requested_at', only: 'explicit' },
  unseen_messages: {
    table: 'running_messages',
    mark: 'supervised_at',
    only: 'true',
  },
  unseen_sessions: { table: 'sessions', mark: 'supervised_at', only: `status = 'active'` },
} satisfies Record<string, Watched>;

type Kind = keyof typeof WATCHED;

/** Whether a row of the kind is due. Ordered, so that it is read from the end of its index, however large the table is. */
function due(kind: Kind, olderThanMs: '$1' | '$2'): string {
  const { table, mark, only } = WATCHED[kind];
  return `(SELECT true FROM ${table} WHERE ${mark} < now() - ${olderThanMs} * interval '1 ms' AND ${only}
            ORDER BY ${mark} LIMIT 1) AS ${kind}`;
}

/** One statement says whether anything is due: the rounds of an idle platform cost no more than this. */
const LOOK = `
  SELECT ${due('unanswered_messages', '$1')}, ${due('unanswered_sessions', '$1')},
         ${due('unseen_messages', '$2')}, ${due('unseen_sessions', '$2')}`;

/**
 * Claims rows by moving their mark, so that two nodes' sweepers share the work. Materialized: a plan that ran the pick again for every
 * row would claim more than the batch.
 */
function claim({ table, mark, only, also = '' }: Watched): string {
  const key = table === 'running_messages' ? 'message_id' : 'session_id';
  const named = table === 'running_messages' ? 'tenant_id, message_id, session_id' : 'tenant_id, session_id';
  return `
    WITH picked AS MATERIALIZED (
      SELECT tenant_id, ${key} FROM ${table} WHERE ${mark} < now() - $1 * interval '1 ms' AND ${only}
       ORDER BY ${mark} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
    UPDATE ${table} t SET ${mark} = now()${also} FROM picked WHERE t.tenant_id = picked.tenant_id AND t.${key} = picked.${key}
    RETURNING ${named.replaceAll(/(\w+)/g, 't.$1')}`;
}

/**
 * Brings what the record wants and the cluster does not know (architecture.md, decision 14): starts what a crash left behind,
 * repeats wake-ups, makes lost workflows again, and fails messages whose workflow an operator terminated.
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
    // The first round starts at once, so that what a crash left behind moves on.
    const loop = { name: 'sweeper', intervalMs: this.#pace.everyMs, immediate: true, log: core.log };
    this.#loop = new Loop({ ...loop, work: () => this.sweep() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends after the round under way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** One round. Rejects when the database or Temporal is away; what it did not do is due again later. */
  async sweep(): Promise<void> {
    const { unansweredMs, unseenMs } = this.#pace;
    const due = await this.#look();
    if (due?.unanswered_messages) await this.#repeatWakeUps();
    if (due?.unanswered_sessions)
      await this.#bring<SessionRef>('unanswered_sessions', unansweredMs, (ref) => this.#temporal.wakeSession(ref));
    if (due?.unseen_messages) await this.#bring<Named>('unseen_messages', unseenMs, (ref) => this.#restoreMessage(ref));
    if (due?.unseen_sessions)
      await this.#bring<SessionRef>('unseen_sessions', unseenMs, (ref) => this.#restoreSession(ref));
  }

  async #look(): Promise<Record<Kind, boolean | null> | undefined> {
    const { unansweredMs, unseenMs } = this.#pace;
    const [due] = await this.#core.db.system((tx) =>
      tx.query<Record<Kind, boolean | null>>(LOOK, [unansweredMs, unseenMs]),
    );
    return due;
  }

  /** @returns how many were claimed and called for */
  async #bring<Row extends SessionRef>(
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
    const messages = await this.#bring<Named>('unanswered_messages', this.#pace.unansweredMs, (ref) =>
      this.#temporal.wakeMessage(ref),
    );
    if (messages > 0) this.#core.log.info({ messages }, 'wake-ups repeated');
  }

  async #restoreSession(ref: SessionRef): Promise<void> {
    const fate = await this.#temporal.fateOfSession(ref);
    if (fate !== 'running') await this.#temporal.wakeSession(ref);
  }

  async #restoreMessage(ref: Named): Promise<void> {
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
    this.#core.log.info({ message_id: ref.message_id, fate }, 'a lost workflow is made again');
    await this.#temporal.wakeMessage(ref);
  }
}
