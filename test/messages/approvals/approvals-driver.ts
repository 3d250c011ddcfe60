import { randomUUID } from 'node:crypto';
import type { Db } from '../../../db/pool.js';
import { cancelMessage } from '../../../messages/cancel.js';
import type { MessageCore } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import { askInput } from '../../../messages/input/ask.js';
import { digestOf } from '../../../messages/input/digest.js';
import { answerFollowUp } from '../../../messages/input/follow-up.js';
import { resolveAs } from '../../../messages/input/resolve.js';
import { lockRunning } from '../../../messages/read/read.js';
import { nextStep } from '../../../messages/supervise/next-step.js';
import { PlatformError } from '../../../runtime/errors.js';
import { newId } from '../../../runtime/ids.js';
import { emptyRecord, insertAgent } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';
import { createGateway } from '../../setup/gateway.js';
import { answerOf, approver, SENDER, TENANT, wayOf } from './deciders.js';
import { MortalProcess } from './mortal-process.js';
import { movedBySweepers } from './moved-by-sweepers.js';

const MESSAGES = 3;
/** Stages at which the platform asks by itself; `agent` and `output` come with an agent's answer. */
const STAGES = ['admission', 'tool', 'plan', 'dispatch'] as const;
const REFUSALS = new Set([
  'ALREADY_RESOLVED',
  'NOT_AWAITING_INPUT',
  'CALLBACK_TOKEN_EXPIRED',
  'ALREADY_TERMINAL',
  'BAD_REQUEST',
  'CONFLICT',
  'INVALID_PARAMS',
  'UNSUPPORTED_OPERATION',
]);

export interface ApprovalStep {
  action: keyof typeof APPROVAL_ACTIONS;
  target: number;
  variant: number;
}

/** Milliseconds since 1970, so far ahead that every request has run out. */
const IN_TWO_DAYS = () => new Date(Date.now() + 172_800_000);

/** Does what people and workflows do with requests, on a real database, and counts what was answered with success. */
export class ApprovalsDriver {
  readonly database: FreshDatabase;
  readonly #db: Db;
  #process: MortalProcess;
  /** Approvals that left the message waiting, and those with edited arguments. */
  partial = 0;
  edits = 0;
  #ids: string[] = [];
  /** How many calls a death cut off. */
  killed = 0;
  /** Decisions by each way. */
  readonly ways: Record<string, number> = {};
  /** Decisions whose callers got a success, and decisions whose callers got no answer because the process died; by message. */
  readonly #taken = new Map<string, number>();
  readonly #untold = new Map<string, number>();

  constructor(database: FreshDatabase) {
    this.database = database;
    this.#db = database.db();
    this.#process = new MortalProcess(this.#db);
  }

  /** Of the process that is alive; a dead one is replaced. */
  get core(): MessageCore {
    return this.#alive().core;
  }

  #alive(): MortalProcess {
    if (this.#process.isDead) this.#process = new MortalProcess(this.#db);
    return this.#process;
  }

  /** Kills the process amid whatever it does. @param commits the next one dies after this many */
  restart(commits?: number): void {
    this.#process.kill();
    this.#process = new MortalProcess(this.#db, commits);
  }

  async reset(): Promise<void> {
    this.#taken.clear();
    this.#untold.clear();
    this.restart();
    await emptyRecord(this.database, TENANT, 'mesh_test');
    await insertAgent(this.database, {
      tenant_id: TENANT,
      instance_id: 'alpha',
      mesh_id: 'mesh_test',
      connection_epoch: 1,
    });
    const gateway = createGateway(this.core);
    const accepted = Array.from({ length: MESSAGES }, async (_, index) => {
      const parts = [{ kind: 'text' as const, text: 'hello' }];
      const message = { kind: 'message' as const, role: 'user' as const, messageId: `client-${index}`, parts };
      return (await gateway.accept(SENDER, { message }, { method: 'message/send' })).message_id;
    });
    this.#ids = await Promise.all(accepted);
  }

  async run({ action, target, variant }: ApprovalStep): Promise<void> {
    const process = this.#alive();
    try {
      await APPROVAL_ACTIONS[action](this, this.#ids[target % MESSAGES] as string, variant);
    } catch (error) {
      // Any error of a dead process is fine, also one that hides `Killed`: that the guards cannot be read, for example.
      if (process.isDead) this.killed += 1;
      else if (!(error instanceof PlatformError && REFUSALS.has(error.code))) throw error;
    }
  }

  messages(): Promise<{ message_id: string; state: string }[]> {
    return this.database.query('SELECT message_id, state FROM messages');
  }

  requests(): Promise<{ request_id: string; stage: string; state: string; outcome: string }[]> {
    return this.database.query(
      `SELECT request_id, stage, state, concat(state, answer, digest, ended_at, (SELECT count(*) FROM input_decisions d
          WHERE d.request_id = r.request_id)) AS outcome FROM input_requests r`,
    );
  }

  cancel(message_id: string): Promise<void> {
    return cancelMessage(this.core, { tenant_id: TENANT, message_id }, 'canceled');
  }

  /** Messages that were decided about, of which no workflow has made anything yet and that nobody would wake: neither routed nor waiting. */
  lostWakeUps(): Promise<object[]> {
    return this.database.query(
      `SELECT r.message_id FROM running_messages r
        WHERE r.wake_requested_at IS NULL AND (r.state = 'failed' OR r.state = 'working' AND r.resolution IS NOT NULL
          AND r.current_dispatch_id IS NULL AND r.unrouted_since IS NULL)`,
    );
  }

  /** Messages whose audit rows do not match the decisions that were taken: all that succeeded, and at most those without an answer. */
  async unaccountedDecisions(): Promise<string[]> {
    const rows = await this.database.query<{ message_id: string; made: number }>(
      `SELECT message_id, count(d.*) FILTER (WHERE d.principal_type <> 'system')::int AS made
         FROM messages LEFT JOIN input_decisions d USING (tenant_id, message_id) GROUP BY message_id`,
    );
    const wrong = rows.filter(({ message_id, made }) => {
      const taken = this.#taken.get(message_id) ?? 0;
      return made < taken || made > taken + (this.#untold.get(message_id) ?? 0);
    });
    return wrong.map(({ message_id }) => message_id);
  }

  /** Kills the process and runs sweepers. @returns the messages that are stuck */
  stuckAfterDeath(): Promise<object[]> {
    this.restart();
    return movedBySweepers(this.database, this.core);
  }

  async ask(message_id: string, variant: number): Promise<void> {
    const stage = STAGES[variant % STAGES.length] ?? 'admission';
    const request = {
      request_id: newId('req'),
      kind: 'approval' as const,
      source: stage === 'plan' ? ('plan' as const) : ('guard' as const),
      stage,
      title: 'May it?',
      prompt: '',
      guard: 'limits',
      ...(stage === 'tool' && { tool: 'pay', arguments: { n: 0 } }),
      digest: digestOf({ tool: 'pay', arguments: { n: 0 } }),
      terms: {
        approvers: [],
        quorum: 1 + (variant % 3),
        timeout_seconds: 86_400,
        reminder_seconds: 3_600,
        allow_self: true,
        on_reject: variant < 6 ? ('fail' as const) : ('tell_agent' as const),
      },
    };
    const ref = { tenant_id: TENANT, message_id };
    await this.core.db.tenant(TENANT, async (tx) => {
      const running = await lockRunning(tx, ref);
      const isIdle = running?.current_dispatch_id === null;
      if (running && (stage === 'tool' || isIdle)) await askInput(tx, ref, request);
    });
  }

  /** The agent that has the open dispatch answers. */
  async answer(message_id: string, variant: number): Promise<void> {
    const [open] = await this.database.query<{ dispatch_id: string; epoch: number }>(
      `SELECT dispatch_id, epoch::int FROM dispatches WHERE message_id = $1 AND state IN ('open', 'sent')`,
      [message_id],
    );
    if (!open) return;
    const dispatches = createDispatches(this.core);
    const ref = { tenant_id: TENANT, message_id, dispatch_id: open.dispatch_id };
    const at = { mesh_id: 'mesh_test', epoch: open.epoch };
    const sent = (await dispatches.markSent(ref, at)) ?? (await dispatches.find(ref));
    if (sent) await dispatches.end(sent, answerOf(variant), open.epoch);
  }

  async decide(
    message_id: string,
    variant: number,
    answer: { resolution: string; arguments?: Record<string, unknown> },
  ): Promise<void> {
    const { way, identify } = await wayOf(this.database, this.#db, message_id, variant);
    const ref = { tenant_id: TENANT, message_id };
    const { new_state } = await this.#counted(message_id, way, () => resolveAs(this.core, ref, answer, identify));
    if (new_state === 'input-required') this.partial += 1;
    if (answer.arguments) this.edits += 1;
  }

  /** An A2A message with the task's id answers what the agent asked. */
  async followUp(message_id: string, variant: number): Promise<void> {
    const parts = [{ kind: 'text' as const, text: variant % 2 === 0 ? 'approve' : 'reject' }];
    const message = {
      kind: 'message' as const,
      role: 'user' as const,
      messageId: randomUUID(),
      taskId: message_id,
      parts,
    };
    await this.#counted(message_id, 'follow-up', () => answerFollowUp(this.core, approver(variant), { message }));
  }

  /** Counts a decision that succeeds, and one whose answer is lost with the process. */
  async #counted<T>(message_id: string, way: string, decide: () => Promise<T>): Promise<T> {
    const process = this.#alive();
    const add = (counts: Map<string, number>) => counts.set(message_id, (counts.get(message_id) ?? 0) + 1);
    try {
      const decided = await decide();
      add(this.#taken);
      this.ways[way] = (this.ways[way] ?? 0) + 1;
      return decided;
    } catch (error) {
      if (process.isDead) add(this.#untold);
      throw error;
    }
  }
}

type Action = (driver: ApprovalsDriver, messageId: string, variant: number) => Promise<unknown>;

/** Everything that can happen to a message that may wait for a human. */
export const APPROVAL_ACTIONS = {
  ask: (driver, id, variant) => driver.ask(id, variant),
  approve: (driver, id, variant) => driver.decide(id, variant, { resolution: 'approved' }),
  reject: (driver, id, variant) => driver.decide(id, variant, { resolution: 'rejected' }),
  edit: (driver, id, variant) => driver.decide(id, variant, { resolution: 'approved', arguments: { n: variant % 2 } }),
  followUp: (driver, id, variant) => driver.followUp(id, variant),
  answer: (driver, id, variant) => driver.answer(id, variant),
  cancel: (driver, id) => driver.cancel(id),
  /** Its workflow looks: after a wake-up, after a restart, or without a reason. */
  look: (driver, message_id) => nextStep(driver.core, { tenant_id: TENANT, message_id }),
  remind: (driver, message_id, variant) =>
    nextStep(driver.core, { tenant_id: TENANT, message_id }, () => new Date(Date.now() + variant * 3_600_000)),
  expire: (driver, message_id) => nextStep(driver.core, { tenant_id: TENANT, message_id }, IN_TWO_DAYS),
  /** The process dies, and another takes its place, which may die right after a commit, before it announces it. */
  restart: async (driver, _id, variant) => driver.restart(variant % 3 === 0 ? undefined : 1 + (variant % 4)),
} satisfies Record<string, Action>;
