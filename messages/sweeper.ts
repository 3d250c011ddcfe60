import type { Tx } from '../db/pool.js';
import { errorMessage } from '../runtime/errors.js';
import { abandon } from './advance.js';
import type { MessageCore, MessageRef, SessionRef } from './core.js';
import type { TemporalLink } from './temporal.js';

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
const CALLS_AT_ONCE = 10;

type Named = MessageRef & SessionRef;

/**
 * Claims rows by moving their mark, so that two nodes' sweepers share the work. Materialized: a plan that ran the pick again for every
 * row would claim more than the batch.
 */
function claim(table: 'messages' | 'sessions', mark: 'wake_requested_at' | 'supervised_at', only: string): string {
  const key = table === 'messages' ? 'message_id' : 'session_id';
  const named = table === 'messages' ? 'tenant_id, message_id, session_id' : 'tenant_id, session_id';
  return `
    WITH picked AS MATERIALIZED (
      SELECT tenant_id, ${key} FROM ${table} WHERE ${mark} < now() - $1 * interval '1 ms' AND ${only}
       ORDER BY ${mark} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
    UPDATE ${table} t SET ${mark} = now() FROM picked WHERE t.tenant_id = picked.tenant_id AND t.${key} = picked.${key}
    RETURNING ${named.replaceAll(/(\w+)/g, 't.$1')}`;
}

const UNANSWERED_MESSAGES = claim('messages', 'wake_requested_at', 'true');
const UNANSWERED_SESSIONS = claim('sessions', 'wake_requested_at', 'true');
const UNSEEN_MESSAGES = claim('messages', 'supervised_at', `state IN ('submitted', 'working', 'input-required')`);
const UNSEEN_SESSIONS = claim('sessions', 'supervised_at', `status = 'active'`);

/** Calls for each of `items`, a few at a time, so that the sweeper never crowds out the callers. */
async function inTurns<T>(items: T[], call: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const work = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await call(item);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, work));
}

/**
 * Brings what the record wants and the cluster does not know (architecture.md, decision 14): starts what a crash left behind,
 * repeats wake-ups, makes lost workflows again, and fails messages whose workflow an operator terminated.
 */
export class Sweeper {
  readonly #core: MessageCore;
  readonly #temporal: TemporalLink;
  readonly #pace: SweeperPace;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #stopped = false;
  #failing = false;

  constructor(core: MessageCore, temporal: TemporalLink, pace: Partial<SweeperPace> = {}) {
    this.#core = core;
    this.#temporal = temporal;
    this.#pace = { ...PACE, ...pace };
  }

  /** Begins with a round at once, so that what a crash left behind moves on. */
  start(): void {
    this.#schedule(0);
  }

  /** Ends after the round under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  /** One round; says in one line when rounds begin to fail and when they work again. */
  async sweep(): Promise<void> {
    try {
      await this.#repeatWakeUps();
      await this.#askAfterUnseen();
      if (this.#failing) this.#core.log.info('the sweeper works again');
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        this.#core.log.warn({ err: errorMessage(error) }, 'the sweeper cannot work; it goes on trying');
      this.#failing = true;
    }
  }

  #schedule(inMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#round = this.sweep().then(() => this.#schedule(this.#pace.everyMs));
    }, inMs);
  }

  #claim<Row extends SessionRef>(statement: string, olderThanMs: number): Promise<Row[]> {
    return this.#core.db.system((tx: Tx) => tx.query<Row>(statement, [olderThanMs]));
  }

  async #repeatWakeUps(): Promise<void> {
    const messages = await this.#claim<Named>(UNANSWERED_MESSAGES, this.#pace.unansweredMs);
    const sessions = await this.#claim<SessionRef>(UNANSWERED_SESSIONS, this.#pace.unansweredMs);
    if (messages.length > 0) this.#core.log.info({ messages: messages.length }, 'wake-ups repeated');
    await inTurns(messages, (ref) => this.#temporal.wakeMessage(ref));
    await inTurns(sessions, (ref) => this.#temporal.wakeSession(ref));
  }

  async #askAfterUnseen(): Promise<void> {
    const messages = await this.#claim<Named>(UNSEEN_MESSAGES, this.#pace.unseenMs);
    await inTurns(messages, (ref) => this.#restoreMessage(ref));
    const sessions = await this.#claim<SessionRef>(UNSEEN_SESSIONS, this.#pace.unseenMs);
    await inTurns(sessions, (ref) => this.#restoreSession(ref));
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
      await abandon(this.#core, ref, { code: 'INTERNAL', message: 'An operator ended the workflow of this message.' });
      return;
    }
    this.#core.log.info({ message_id: ref.message_id, fate }, 'a lost workflow is made again');
    await this.#temporal.wakeMessage(ref);
  }
}
