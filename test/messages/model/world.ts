import { isTerminal } from '../../../contracts/message-states.js';
import type { Db } from '../../../db/pool.js';
import { sessionDeps } from '../../../messages/cancel.js';
import type { MessageCore, MessageRef } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { PlatformError } from '../../../runtime/errors.js';
import { createSessions } from '../../../sessions/sessions.js';
import { emptyRecord, insertAgent, messageCore, textMessage } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';
import { createGateway } from '../../setup/gateway.js';
import type { Seen } from '../../setup/model.js';
import { SENDER, TENANT } from './deciders.js';
import { MortalProcess } from './mortal-process.js';

export const MESH = 'mesh_test';
export const AGENTS = ['alpha', 'beta'];

/** What an action may be refused with; anything else that is thrown is a defect. */
const REFUSALS = new Set([
  ...['IDEMPOTENCY_MISMATCH', 'SESSION_CLOSED', 'AGENT_AT_CAPACITY', 'ALREADY_TERMINAL', 'ALREADY_RESOLVED'],
  ...['NOT_AWAITING_INPUT', 'CALLBACK_TOKEN_EXPIRED', 'BAD_REQUEST', 'CONFLICT', 'INVALID_PARAMS'],
  'UNSUPPORTED_OPERATION',
]);

export interface StoredDispatch extends DispatchRef {
  session_id: string;
  epoch: number;
}

/** A tenant with two agents of two sessions each, on a real database, and a process of the platform that may be killed. */
export class RecordWorld {
  readonly database: FreshDatabase;
  readonly seen: Seen;
  /** Outlives the processes. */
  readonly db: Db;
  /** Of a process that nobody kills. */
  readonly whole: MessageCore;
  readonly sessions: ReturnType<typeof createSessions>;
  readonly dispatches: ReturnType<typeof createDispatches>;
  #process: MortalProcess;
  /** How often something happened that may happen once, by what and to whom. */
  readonly once = new Map<string, number>();
  /** Arguments of the tool calls that passed, by the request whose grant they used. */
  readonly passed = new Map<string, unknown[]>();
  /** The latest request that a tool call waits for, by its dispatch. */
  readonly waitingCalls = new Map<string, string>();
  /** Decisions whose callers got a success, and decisions whose callers got no answer because the process died; by message. */
  readonly taken = new Map<string, number>();
  readonly untold = new Map<string, number>();
  /** What ended, by its id, and how. */
  readonly ended = new Map<string, string>();

  private constructor(database: FreshDatabase, seen: Seen) {
    this.database = database;
    this.seen = seen;
    this.db = database.db();
    this.whole = messageCore(this.db);
    this.sessions = createSessions(sessionDeps(this.whole));
    this.dispatches = createDispatches(this.whole);
    this.#process = new MortalProcess(this.db);
  }

  /** An empty record but for so many messages that nobody has looked at. */
  static async begin(database: FreshDatabase, seen: Seen, messages: number): Promise<RecordWorld> {
    const world = new RecordWorld(database, seen);
    await emptyRecord(database, TENANT, MESH);
    const here = { mesh_id: MESH, connection_epoch: 1, max_concurrent_sessions: 2 };
    for (const instance_id of AGENTS) await insertAgent(database, { tenant_id: TENANT, instance_id, ...here });
    for (let number = 0; number < messages; number += 1) await world.accept(textMessage());
    return world;
  }

  /** Of the process that is alive; a dead one is replaced. */
  get core(): MessageCore {
    if (this.#process.isDead) this.restart();
    return this.#process.core;
  }

  get gateway() {
    return createGateway(this.core);
  }

  /** Kills the process amid whatever it does. @param commits the next one dies after this many */
  restart(commits?: number): void {
    this.#process.isDead = true;
    this.#process = new MortalProcess(this.db, commits);
  }

  /** Does a step. What it is refused with is no defect, nor is any error of a process that died. */
  async attempt(step: () => Promise<unknown>): Promise<void> {
    if (this.#process.isDead) this.restart();
    const process = this.#process;
    try {
      await step();
    } catch (error) {
      if (process.isDead) this.seen.note('killed');
      else if (!(error instanceof PlatformError && REFUSALS.has(error.code))) throw error;
    }
  }

  accept(message: ReturnType<typeof textMessage>) {
    return this.gateway.accept(SENDER, { message }, { method: 'message/send' });
  }

  countOnce(what: string, happened: unknown): void {
    if (happened) this.once.set(what, (this.once.get(what) ?? 0) + 1);
  }

  /** Counts a decision that succeeds, and one whose answer is lost with the process. */
  async decided<T>(message_id: string, way: string, decide: (core: MessageCore) => Promise<T>): Promise<T> {
    const { core } = this;
    const process = this.#process;
    const add = (counts: Map<string, number>) => counts.set(message_id, (counts.get(message_id) ?? 0) + 1);
    try {
      const decision = await decide(core);
      add(this.taken);
      this.seen.note(way);
      return decision;
    } catch (error) {
      if (process.isDead) add(this.untold);
      throw error;
    }
  }

  messages(): Promise<{ message_id: string; state: string; ended: string }[]> {
    return this.database.query(
      'SELECT message_id, state, concat(state, completed_at, error_code, artifacts) AS ended FROM messages ORDER BY message_id DESC',
    );
  }

  /** Any message, those that wait for a human first. */
  async message(target: number): Promise<MessageRef | undefined> {
    const all = await this.database.query<MessageRef>(
      `SELECT tenant_id, message_id FROM messages ORDER BY state = 'input-required' DESC, message_id DESC`,
    );
    return all[target % all.length];
  }

  async session(target: number): Promise<string | undefined> {
    const all = await this.database.column<string>('SELECT session_id FROM sessions ORDER BY session_id DESC');
    return all[target % all.length];
  }

  /** Any dispatch there ever was, those that agents work on first: late answers come too. */
  async dispatch(target: number): Promise<StoredDispatch | undefined> {
    const all = await this.database.query<StoredDispatch>(
      `SELECT tenant_id, message_id, dispatch_id, m.session_id, epoch FROM dispatches d JOIN messages m USING (tenant_id, message_id)
        ORDER BY d.state = 'sent' DESC, d.state = 'open' DESC, dispatch_id DESC`,
    );
    return all[target % all.length];
  }

  /** Ends all that is not over: what an operator would do before going home. */
  async finishAll(): Promise<void> {
    const gateway = createGateway(this.whole);
    for (const { message_id, state } of await this.messages())
      if (!isTerminal(state)) await gateway.cancel(SENDER, message_id, 'the end');
    const open = await this.database.column<string>("SELECT session_id FROM sessions WHERE status = 'active'");
    for (const session_id of open) await this.sessions.close(SENDER, session_id);
  }
}
