import pLimit from 'p-limit';
import type { MessageInput } from '../../contracts/workflows.js';
import { isTenantBusy } from '../../runtime/errors.js';
import { Loop } from '../../runtime/loop.js';
import { allOrFirstFailure } from '../../runtime/promises/all-or-first-failure.js';
import type { MessageCore } from '../core.js';
import { advanceMessage } from './advance.js';
import type { TemporalLink } from './temporal-link.js';

/** Between rounds. */
const EVERY_MS = 1_000;
/** A workflow that has not written its row for this long is looked up. */
const SUPERVISED_MS = 60_000;
const BATCH = 200;
/** After so long, in milliseconds, no further row of a batch is begun. */
const BATCH_MS = 5_000;
/** Concurrent calls of Temporal; few, so that the sweeper does not slow down callers. */
const CALLS_AT_ONCE = 10;
/** After this many failures the rest of a batch waits until it is due again: each call may take its whole time limit. */
const FAILURES_MAX = 10;

type Workflows = Pick<TemporalLink, 'wakeMessage' | 'wakeSession' | 'fateOfSession'>;

/** The key of each table, beside the tenant. */
const KEYS = { running_messages: 'message_id', sessions: 'session_id', input_requests: 'request_id' };

/** Rows whose next step nobody has taken in time. `mark`: the column by which they are found and claimed. */
interface DueRows {
  table: keyof typeof KEYS;
  mark: 'wake_requested_at' | 'supervised_at' | 'wait_ends_at';
  condition: string;
}

const DUE = {
  /** Messages whose next step nobody has taken. */
  unmoved_messages: { table: 'running_messages', mark: 'wake_requested_at', condition: `state <> 'input-required'` },
  /** Messages whose wait for an agent is over. */
  overdue_messages: { table: 'running_messages', mark: 'wait_ends_at', condition: 'true' },
  /** Messages that wait for a human, and whose workflow has not looked since. */
  unseen_questions: { table: 'running_messages', mark: 'wake_requested_at', condition: `state = 'input-required'` },
  /** Decisions that the message's workflow has not read. The message may have ended since. */
  unseen_decisions: { table: 'input_requests', mark: 'wake_requested_at', condition: 'message_id IS NOT NULL' },
  /** Sessions whose workflow has not looked since it was asked to. */
  unmoved_sessions: { table: 'sessions', mark: 'wake_requested_at', condition: 'true' },
  unseen_sessions: { table: 'sessions', mark: 'supervised_at', condition: `status = 'active'` },
} satisfies Record<string, DueRows>;

type Kind = keyof typeof DUE;
const KINDS = Object.keys(DUE) as Kind[];

/** Due rows among which a batch is chosen, so that a tenant with thousands leaves room for those of others. */
const CHOICE = 5_000;

/** Whether a call was dropped before it began. */
const isLeft = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';

/** How old a mark must be for its row to be due, in milliseconds. */
type DueAfterMs = Record<DueRows['mark'], number>;

const isDue = ({ mark, condition }: DueRows, dueAfterMs: DueAfterMs) =>
  `${mark} < now() - interval '${dueAfterMs[mark]} ms' AND ${condition}`;

/** The due rows of a kind. The order lets a search read the index from its oldest entry, however large the table is. */
function dueRows(rows: DueRows, dueAfterMs: DueAfterMs): string {
  return `FROM ${rows.table} WHERE ${isDue(rows, dueAfterMs)} ORDER BY ${rows.mark}`;
}

/** Which kinds have due rows. The only statement in a round of an idle platform. */
function dueKinds(dueAfterMs: DueAfterMs): string {
  return `SELECT ${KINDS.map((kind) => `(SELECT true ${dueRows(DUE[kind], dueAfterMs)} LIMIT 1) AS ${kind}`).join()}`;
}

/**
 * Claims rows by moving their mark, so that the sweepers of several nodes share the work: of each tenant the oldest, then the second oldest,
 * and so on. MATERIALIZED, because a plan that repeats the subquery for every row would claim more than a batch.
 */
function claim(rows: DueRows, dueAfterMs: DueAfterMs): string {
  const { table, mark } = rows;
  const key = KEYS[table];
  return `
    WITH due AS MATERIALIZED (
      SELECT tenant_id, ${key}, ${mark} AS since, row_number() OVER (PARTITION BY tenant_id ORDER BY ${mark}) AS turn
        FROM (SELECT tenant_id, ${key}, ${mark} ${dueRows(rows, dueAfterMs)} LIMIT ${CHOICE}) AS oldest),
    picked AS MATERIALIZED (
      SELECT tenant_id, ${key} FROM ${table} JOIN due USING (tenant_id, ${key}) WHERE ${isDue(rows, dueAfterMs)}
       ORDER BY turn, since LIMIT ${BATCH} FOR UPDATE OF ${table} SKIP LOCKED)
    UPDATE ${table} t SET ${mark} = now() FROM picked WHERE t.tenant_id = picked.tenant_id AND t.${key} = picked.${key}
    RETURNING t.tenant_id, t.session_id${table === 'sessions' ? '' : ', t.message_id'}`;
}

/**
 * Does what a crash left undone: takes messages further, fails those whose wait is over, and brings the workflows in line with the record
 * (docs/durability.md).
 */
export class Sweeper extends Loop {
  readonly #core: MessageCore;
  readonly #temporal: Workflows;
  readonly #dueAfterMs: DueAfterMs;
  readonly #repairs: Record<Kind, (row: MessageInput) => Promise<void>> = {
    unmoved_messages: (row) => advanceMessage(this.#core, row, 1),
    overdue_messages: (row) => advanceMessage(this.#core, row, 1),
    unseen_questions: (row) => this.#temporal.wakeMessage(row),
    unseen_decisions: (row) => this.#temporal.wakeMessage(row),
    unmoved_sessions: (row) => this.#temporal.wakeSession(row),
    unseen_sessions: async (row) => {
      if ((await this.#temporal.fateOfSession(row)) !== 'running') await this.#temporal.wakeSession(row);
    },
  };

  constructor(core: MessageCore, temporal: Workflows) {
    // The first round starts at once, so that messages continue right after a crash.
    super({ name: 'sweeper', intervalMs: EVERY_MS, immediate: true, log: core.log, work: () => this.sweep() });
    this.#core = core;
    this.#temporal = temporal;
    this.#dueAfterMs = { wake_requested_at: core.clocks.overdueMs, supervised_at: SUPERVISED_MS, wait_ends_at: 0 };
  }

  /** One round. Rejects when the database or Temporal is away; the rows that it did not reach are due again later. */
  async sweep(): Promise<void> {
    const query = dueKinds(this.#dueAfterMs);
    const [due] = await this.#core.db.system((tx) => tx.query<Record<Kind, boolean | null>>(query));
    await allOrFirstFailure(KINDS.filter((kind) => due?.[kind]).map((kind) => this.#repair(kind)));
  }

  async #repair(kind: Kind): Promise<void> {
    const query = claim(DUE[kind], this.#dueAfterMs);
    const claimed = await this.#core.db.system((tx) => tx.query<MessageInput>(query));
    const limit = pLimit({ concurrency: CALLS_AT_ONCE, rejectOnClear: true });
    // Rows that are not begun in time, because evaluators are slow for example, are due again later.
    const timer = setTimeout(() => limit.clearQueue(), BATCH_MS);
    let failures = 0;
    const calls = claimed.map((row) =>
      limit(this.#repairs[kind], row).catch((error: unknown) => {
        if (isTenantBusy(error) || isLeft(error)) return; // the row is due again later
        failures += 1;
        if (failures === FAILURES_MAX) limit.clearQueue();
        throw error;
      }),
    );
    await allOrFirstFailure(calls).finally(() => clearTimeout(timer));
    if (kind === 'unmoved_messages' && claimed.length > 0)
      this.#core.log.info({ messages: claimed.length }, 'messages taken further that were left behind');
  }
}
